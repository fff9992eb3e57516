import type { Application } from '../core/application.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { hostInUrl } from '../lib/address.ts';
import type { Logger } from '../log/log.ts';
import type { OriginMapStore } from './origin-map-store.ts';

export interface OriginMapsOptions {
  readonly registry: Registry;
  /** Port of the OVT publisher; without one this server is not an origin. */
  readonly ovtPort: number | undefined;
  /** Whether a stream was pulled from another origin of the map: those are not announced. */
  readonly isFromStore: (input: InputStream) => boolean;
  readonly log: Logger;
}

/** Origin maps of the virtual hosts that have one (`OriginMapStore`), with the announcements of this server. */
export class OriginMaps {
  readonly #options: OriginMapsOptions;
  readonly #stores = new Map<VirtualHost, Promise<OriginMapStore>>();
  readonly #onOutput = (output: OutputStream, application: Application): void => this.#tell(output, application);
  readonly #onClosed = (vhost: VirtualHost): void => void this.#close(vhost);

  constructor(options: OriginMapsOptions) {
    this.#options = options;
    options.registry.on('output', this.#onOutput).on('vhostClosed', this.#onClosed);
  }

  /** URL under which another origin has a stream; undefined without one, or without a store. */
  async find(vhost: VirtualHost, app: string, output: string): Promise<string | undefined> {
    const store = await this.#store(vhost);
    const url = await store?.find(`${app}/${output}`);
    return url === this.#url(vhost, app, output) ? undefined : url;
  }

  async close(): Promise<void> {
    this.#options.registry.off('output', this.#onOutput).off('vhostClosed', this.#onClosed);
    await Promise.all([...this.#stores.keys()].map((vhost) => this.#close(vhost)));
  }

  #tell(output: OutputStream, { vhost, name, config }: Application): void {
    const url = this.#url(vhost, name, output.name);
    const { isRelay } = output.input;
    if (url === undefined || isRelay || config.publishers.ovt === undefined || this.#options.isFromStore(output.input))
      return;
    void this.#store(vhost)?.then((store) => {
      if (!output.closed) output.once('close', store.announce(`${name}/${output.name}`, url));
    });
  }

  /** URL for other origins to pull an output stream of this server. */
  #url({ config }: VirtualHost, app: string, output: string): string | undefined {
    const host = config.originMapStore?.originHostName;
    const { ovtPort } = this.#options;
    if (host === undefined || ovtPort === undefined) return undefined;
    return `ovt://${hostInUrl(host)}:${ovtPort}/${encodeURIComponent(app)}/${encodeURIComponent(output)}`;
  }

  #store(vhost: VirtualHost): Promise<OriginMapStore> | undefined {
    const config = vhost.config.originMapStore;
    if (config === undefined) return undefined;
    const present = this.#stores.get(vhost);
    if (present !== undefined) return present;
    const log = this.#options.log.child({ vhost: vhost.name });
    // loads the Redis client only if it is needed
    const opened = import('./origin-map-store.ts').then((module) => new module.OriginMapStore(config, log));
    this.#stores.set(vhost, opened);
    return opened;
  }

  async #close(vhost: VirtualHost): Promise<void> {
    const store = this.#stores.get(vhost);
    this.#stores.delete(vhost);
    await (await store)?.close();
  }
}
