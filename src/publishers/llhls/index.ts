import type { FastifyPluginAsync } from 'fastify';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Logger } from '../../log.ts';
import { CrossDomainRules } from '../http/cors.ts';
import { addDefaultPlaylist } from './default-playlist.ts';
import { llhlsRoutes } from './routes.ts';
import { LlhlsStream } from './stream.ts';

export interface LlhlsPublisherOptions {
  readonly registry: Registry;
  readonly log: Logger;
  /** Secret that session tokens are made with, the same on every node. */
  readonly tokenKey: Buffer;
  /** What applications without CrossDomains of their own have. */
  readonly crossDomains?: CrossDomainsConfig;
}

/** Packages every output stream of applications with LL-HLS, and serves it over HTTP. */
export class LlhlsPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #options: LlhlsPublisherOptions;
  readonly #streams = new Map<OutputStream, LlhlsStream>();
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: LlhlsPublisherOptions) {
    this.#options = options;
    options.registry.on('output', this.#attach);
    this.routes = llhlsRoutes({
      registry: options.registry,
      stream: (application, name) => {
        const output = application.outputs.get(name);
        return output === undefined ? undefined : this.#streams.get(output);
      },
      crossDomains: new CrossDomainRules('llhls', options.crossDomains),
    });
  }

  /** Ends every stream's packaging and every request that waits. Idempotent. */
  close(): void {
    this.#options.registry.off('output', this.#attach);
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
  }

  #open(output: OutputStream, application: Application): void {
    const config = application.config.publishers.llhls;
    if (config === undefined || output.closed) return;
    if (config.createDefaultPlaylist) addDefaultPlaylist(output);
    const { log, tokenKey } = this.#options;
    const bound = log.child({ publisher: 'llhls', stream: `${application.internalName}/${output.name}` });
    const stream = new LlhlsStream(output, application, config, bound, tokenKey);
    this.#streams.set(output, stream);
    output.once('close', () => {
      this.#streams.delete(output);
      stream.close();
    });
  }
}
