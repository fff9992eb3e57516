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
import { OwnStreams } from './own-streams.ts';
import { answerNodes } from './remote/answers.ts';
import { RemoteStreams } from './remote/streams.ts';
import { llhlsRoutes } from './routes.ts';
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
  readonly #registry: Registry;
  readonly #own: OwnStreams;
  readonly #remote: RemoteStreams;
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(options: LlhlsPublisherOptions) {
    const { registry, cluster, directory, calls, log, tokenKey, crossDomains } = options;
    const tokens = ({ internalName }: Application, name: string) => new SessionTokens(tokenKey, `${internalName}/${name}`);
    this.#registry = registry;
    this.#own = new OwnStreams({ directory, tokens, log });
    this.#remote = new RemoteStreams({ cluster, directory, tokens });
    registry.on('output', this.#attach);
    answerNodes(calls, ({ vhost, app, stream }) => {
      const application = registry.vhosts.get(vhost)?.applications.get(app);
      return application && this.#own.find(application, stream);
    });
    this.routes = llhlsRoutes({
      registry,
      stream: (application, name) => this.#find(application, name),
      crossDomains: new CrossDomainRules('llhls', crossDomains),
    });
  }

  /** Ends every stream's packaging and every request that waits. Idempotent. */
  close(): void {
    this.#registry.off('output', this.#attach);
    this.#remote.close();
    this.#own.close();
  }

  #find(application: Application, name: string): PlayedStream | undefined | Promise<PlayedStream | undefined> {
    const own = this.#own.find(application, name);
    if (own?.interrupted === false) return own;
    return this.#remote.find(application, name) ?? own ?? this.#remote.locate(application, name);
  }

  #open(output: OutputStream, application: Application): void {
    if (output.input.isRelay) return;
    this.#own.open(output, application);
    this.#remote.handOver(application, output.name);
  }
}
