import type { FastifyPluginAsync } from 'fastify';
import type { Access } from '../access/access.ts';
import type { CrossDomainsConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { exchangeOf, type Exchange } from '../publishers/hls/answer/exchange.ts';
import { CrossDomainRules } from '../publishers/hls/http/cors.ts';
import { respond } from '../publishers/hls/http/respond.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import { serveList } from './list.ts';
import { RecordedFiles } from './recorded-files.ts';
import { refuse } from './refuse.ts';
import { applicationOf, handled, type PlaybackRequest } from './requests.ts';

export interface PlaybackPublisherOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly recordings: Recordings;
  /** undefined on a node that runs alone. */
  readonly others: OtherNodes | undefined;
  readonly calls: PeerCalls;
  /** For applications without CrossDomains. */
  readonly crossDomains?: CrossDomainsConfig | undefined;
  readonly log: Logger;
}

/** Serves the finished recordings of all nodes, where an application has Publishers/Playback. */
export class PlaybackPublisher {
  readonly routes: FastifyPluginAsync;

  constructor(options: PlaybackPublisherOptions) {
    const { registry, access, crossDomains: fallback } = options;
    const log = options.log.child({ module: 'playback' });
    const files = new RecordedFiles({ ...options, log });
    const crossDomains = new CrossDomainRules('playback', fallback);
    const common = { registry, access, crossDomains };
    this.routes = async (app) => {
      app.setErrorHandler((error: Error, request, reply) => refuse(error, exchangeOf(request, reply)));
      const route = (url: string, serve: (request: PlaybackRequest, exchange: Exchange) => Promise<void>): void => {
        const answer = handled(serve);
        app.route({
          method: ['GET', 'HEAD', 'OPTIONS'],
          url,
          exposeHeadRoute: false,
          handler: (request, reply) => {
            const application = applicationOf(common, request as PlaybackRequest);
            if (application === undefined) return reply.callNotFound();
            if (request.method !== 'OPTIONS') return answer(request as PlaybackRequest, reply);
            const exchange = exchangeOf(request, reply);
            crossDomains.apply(application, exchange);
            respond(exchange, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
          },
        });
      };
      route('/:app/:stream/list', (request, exchange) => serveList({ ...common, files }, request, exchange));
    };
  }
}
