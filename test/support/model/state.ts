import type { Kiln } from '../server/kiln.ts';
import type { PictureClient } from '../rtmp/picture-client.ts';

/** A stream that somebody publishes. */
export interface PublishedStream {
  readonly client: PictureClient;
  /** The node that took it. */
  readonly node: Kiln;
}

/** What there should be of an application. */
export interface ModelApplication {
  /** Made on demand from the template. */
  dynamic: boolean;
  readonly profiles: Set<string>;
  readonly streams: Map<string, PublishedStream>;
}

export interface ModelVhost {
  readonly hasTemplate: boolean;
  readonly isStatic: boolean;
  readonly apps: Map<string, ModelApplication>;
}

/** What one server would have, whatever nodes are called. */
export class ServerState {
  readonly vhosts = new Map<string, ModelVhost>();

  constructor() {
    const app: ModelApplication = { dynamic: false, profiles: new Set(['default']), streams: new Map() };
    this.vhosts.set('default', { hasTemplate: false, isStatic: true, apps: new Map([['app', app]]) });
  }

  app(vhost: string, app: string): ModelApplication | undefined {
    return this.vhosts.get(vhost)?.apps.get(app);
  }

  stream(vhost: string, app: string, stream: string): PublishedStream | undefined {
    return this.app(vhost, app)?.streams.get(stream);
  }

  /** Where there are streams: the names of each. */
  get published(): { readonly vhost: string; readonly app: string; readonly stream: string }[] {
    return [...this.vhosts].flatMap(([vhost, { apps }]) =>
      [...apps].flatMap(([app, { streams }]) => Array.from(streams.keys(), (stream) => ({ vhost, app, stream }))),
    );
  }

  /** Streams of the server, of a virtual host, or of an application. */
  streams(vhost?: string, app?: string): PublishedStream[] {
    const vhosts = [...this.vhosts].filter(([name]) => vhost === undefined || name === vhost);
    const apps = vhosts.flatMap(([, { apps: all }]) => [...all].filter(([name]) => app === undefined || name === app));
    return apps.flatMap(([, { streams }]) => [...streams.values()]);
  }
}
