import type { FastifyPluginAsync } from 'fastify';
import type { Cluster } from '#cluster';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Logger } from '../../log.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { CrossDomainRules } from '../http/cors.ts';
import type { PlayedStream } from './answer.ts';
import { addDefaultPlaylist } from './default-playlist.ts';
import { answerNodes } from './remote/answers.ts';
import { RemoteStreams } from './remote/streams.ts';
import { llhlsRoutes } from './routes.ts';
import { LlhlsStream } from './stream.ts';
import { SessionTokens } from './token.ts';

export interface LlhlsPublisherOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'forward'>;
  readonly directory: StreamDirectory;
  readonly calls: PeerCalls;
  readonly log: Logger;
  /** Secret that session tokens are made with, the same on every node. */
  readonly tokenKey: Buffer;
  /** What applications without CrossDomains of their own have. */
  readonly crossDomains?: CrossDomainsConfig;
}

/**
 * Packages every output stream of applications with LL-HLS on this node, and serves over HTTP those of all nodes.
 */
export class LlhlsPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #options: LlhlsPublisherOptions;
  readonly #streams = new Map<OutputStream, LlhlsStream>();
  readonly #remote: RemoteStreams;
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: LlhlsPublisherOptions) {
    const { registry, calls, crossDomains } = options;
    this.#options = options;
    registry.on('output', this.#attach);
    this.#remote = new RemoteStreams({ ...options, tokens: (application, name) => this.#tokens(application, name) });
    answerNodes(calls, ({ vhost, app, stream }) => {
      const application = registry.vhosts.get(vhost)?.applications.get(app);
      return application && this.#own(application, stream);
    });
    this.routes = llhlsRoutes({
      registry,
      stream: (application, name) => this.#find(application, name),
      crossDomains: new CrossDomainRules('llhls', crossDomains),
    });
  }

  /** Ends every stream's packaging and every request that waits. Idempotent. */
  close(): void {
    this.#options.registry.off('output', this.#attach);
    this.#remote.close();
    for (const stream of this.#streams.values()) stream.close();
    this.#streams.clear();
  }

  #find(application: Application, name: string): PlayedStream | undefined | Promise<PlayedStream | undefined> {
    return this.#own(application, name) ?? this.#remote.find(application, name) ?? this.#remote.locate(application, name);
  }

  #own(application: Application, name: string): LlhlsStream | undefined {
    const output = application.outputs.get(name);
    return output === undefined ? undefined : this.#streams.get(output);
  }

  #tokens(application: Application, name: string): SessionTokens {
    return new SessionTokens(this.#options.tokenKey, `${application.internalName}/${name}`);
  }

  #open(output: OutputStream, application: Application): void {
    const config = application.config.publishers.llhls;
    if (config === undefined || output.closed || output.input.isRelay) return;
    if (config.createDefaultPlaylist) addDefaultPlaylist(output);
    const log = this.#options.log.child({ publisher: 'llhls', stream: `${application.internalName}/${output.name}` });
    const tokens = this.#tokens(application, output.name);
    const stream = new LlhlsStream({ output, application, config, tokens, log });
    this.#streams.set(output, stream);
    this.#remote.handOver(application, output.name);
    output.once('close', () => {
      this.#streams.delete(output);
      stream.close();
    });
  }
}
