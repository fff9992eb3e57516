import type { ApplicationConfig, OutputProfileConfig } from '../config/model.ts';
import { explicit } from '../config/resolve.ts';
import type { Application } from '../core/application.ts';
import type { VirtualHost } from '../core/vhost.ts';

/** A configuration object as it was given, without defaults (docs/compatibility.md#rest-answers). */
type Explicit = Readonly<Record<string, unknown>>;

/** The virtual host without its applications, with the template of those made on demand. */
export function viewVhost(vhost: VirtualHost): Explicit {
  const { applications: _, ...view } = given(vhost.config);
  const { template } = vhost;
  return template === undefined ? view : { ...view, dynamicApplicationTemplate: viewConfig(template) };
}

/** An application as the API shows it. */
export function viewApplication(application: Application): Explicit {
  return { ...viewConfig(application.config), dynamic: application.dynamic };
}

/** An output profile as the API shows it. */
export function viewProfile(profile: OutputProfileConfig): Explicit {
  return viewConfig(profile);
}

/** A configuration object as the API shows it. */
export function viewConfig(config: ApplicationConfig | OutputProfileConfig): Explicit {
  return given(config);
}

function given(config: object): Explicit {
  return explicit(config) as Explicit;
}
