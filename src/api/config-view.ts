import type { ApplicationConfig, OutputProfileConfig } from '../config/model.ts';
import { explicit } from '../config/resolve.ts';
import type { Application } from '../core/application.ts';
import type { VirtualHost } from '../core/vhost.ts';

/** A configuration object with its given values, without defaults (docs/compatibility.md#rest-answers). */
type Explicit = Readonly<Record<string, unknown>>;

/** Shows a virtual host without its applications, but with the template of on-demand ones. */
export function viewVhost(vhost: VirtualHost): Explicit {
  const { applications: _, ...view } = given(vhost.config);
  const { template } = vhost;
  return template === undefined ? view : { ...view, dynamicApplicationTemplate: viewConfig(template) };
}

export function viewApplication(application: Application): Explicit {
  return { ...viewConfig(application.config), dynamic: application.dynamic };
}

export function viewProfile(profile: OutputProfileConfig): Explicit {
  return viewConfig(profile);
}

export function viewConfig(config: ApplicationConfig | OutputProfileConfig): Explicit {
  return given(config);
}

function given(config: object): Explicit {
  return explicit(config) as Explicit;
}
