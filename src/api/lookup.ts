import Type from 'typebox';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { InputStream } from '../core/input-stream.ts';
import { kilnError } from '../errors.ts';

export const VhostPath = Type.Object({ vhost: Type.String() });
export const ApplicationPath = Type.Object({ vhost: Type.String(), app: Type.String() });
export const StreamPath = Type.Object({ vhost: Type.String(), app: Type.String(), stream: Type.String() });

export const SessionPath = Type.Object({ ...StreamPath.properties, session: Type.String() });

interface ApplicationNames {
  readonly vhost: string;
  readonly app: string;
}

interface StreamNames extends ApplicationNames {
  readonly stream: string;
}

/** @throws vhostNotFound, applicationNotFound */
export function findApplication(registry: Registry, { vhost, app }: ApplicationNames): Application {
  return registry.vhost(vhost).application(app);
}

/** Live input stream of a path. @throws vhostNotFound, applicationNotFound, streamNotFound */
export function findStream(registry: Registry, path: StreamNames): InputStream {
  const application = findApplication(registry, path);
  const input = application.stream(path.stream);
  if (input === undefined) {
    throw kilnError('streamNotFound', `${path.vhost}/${application.internalName}/${path.stream}`);
  }
  return input;
}
