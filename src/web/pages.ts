import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { httpAccess } from '../access/http-request.ts';
import type { Redirects } from '../access/redirects.ts';
import type { CrossDomainsConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { loadAssets } from './assets.ts';
import { frameAncestors } from './embedding.ts';
import type { LiveStreams } from './live-streams.ts';
import { Pages, wantsPage } from './page.ts';
import { publishPlaces, type PublishPorts } from './publish-places.ts';
import type { PlayablePublisher, ServedHere, StreamList } from './streams.ts';

export interface PagesOptions {
  readonly registry: Registry;
  readonly live: LiveStreams;
  /** Protocols and files of the same port: the pages offer nothing else. */
  readonly serves: readonly ServedHere[];
  /** Where publishers connect to. */
  readonly publish?: PublishPorts;
  /** Default of applications without CrossDomains. */
  readonly crossDomains?: CrossDomainsConfig | undefined;
  /** Where viewers may be sent; absent: nowhere. */
  readonly redirects?: Pick<Redirects, 'schemes'>;
  /** Answers requests for `/:app/:stream` that are for media and not for a page. @returns whether it does */
  readonly media?: MediaHandler | undefined;
  /** Called with each page that publishes, as a publisher may follow. */
  readonly onPublishPage?: () => void;
}

interface StreamParams {
  app: string;
  stream: string;
}

export type MediaHandler = (request: FastifyRequest<{ Params: StreamParams }>, reply: FastifyReply) => boolean;

/**
 * The list of live streams at `/`, a player at `/:app/:stream`, what both show at `/-/streams.json`; at `/publish`, and at
 * `/:app/:stream?publish` for one stream, a page that publishes by WHIP, and at `/-/publish.json` where else one may publish;
 * their files under `/-/assets/`, and what answers where nothing is. Needs no authorization: all of it is for everybody.
 * Register it on every port of a viewer's publisher.
 */
export function pagesRoutes(options: PagesOptions): FastifyPluginAsync {
  const { registry, live, serves, publish = {}, crossDomains, redirects, media, onPublishPage } = options;
  const plays = serves.filter((one): one is PlayablePublisher => one === 'llhls' || one === 'webrtc');
  const here = { thumbnails: serves.includes('thumbnail'), publishes: serves.includes('whip') };
  const shown = (list: StreamList): StreamList =>
    here.thumbnails ? list : { ...list, streams: list.streams.map((one) => ({ ...one, thumbnail: undefined })) };
  return async (app) => {
    const pages = new Pages(app, await loadAssets(), () => redirects?.schemes ?? []);

    app.setNotFoundHandler(async (request, reply) => {
      reply.header('vary', 'accept');
      if (wantsPage(request)) return pages.notFound(request, reply);
      return reply.code(404).type('text/plain; charset=utf-8').send('Not found');
    });

    app.get('/', async (request, reply) => {
      if (registry.resolve(request.hostname) === undefined) return pages.notFound(request, reply);
      return pages.send('index.html', request, reply);
    });

    const publishPage = (request: FastifyRequest, reply: FastifyReply) => {
      if (here.publishes) onPublishPage?.();
      return pages.send('publish.html', request, reply);
    };

    app.get('/publish', async (request, reply) => {
      if (registry.resolve(request.hostname) === undefined) return pages.notFound(request, reply);
      return publishPage(request, reply);
    });

    app.get<{ Params: StreamParams; Querystring: Record<string, unknown> }>('/:app/:stream', async (request, reply) => {
      if (media?.(request as FastifyRequest<{ Params: StreamParams }>, reply) === true) return reply;
      const vhost = registry.resolve(request.hostname);
      const { params, query } = request;
      if (vhost === undefined || !takesStreams(vhost, params.app)) return pages.notFound(request, reply);
      if (query['publish'] !== undefined) return publishPage(request, reply);
      if (query['embed'] === undefined) return pages.send('player.html', request, reply);
      const { llhls, webrtc } = vhost.applications.get(params.app)?.config.publishers ?? {};
      const allowed = llhls?.crossDomains ?? webrtc?.crossDomains ?? crossDomains;
      return pages.send('player.html', request, reply, frameAncestors(allowed));
    });

    app.get('/-/publish.json', async (request, reply) => {
      const vhost = registry.resolve(request.hostname);
      if (vhost === undefined) return pages.notFound(request, reply);
      const { client } = httpAccess(request.raw, request);
      reply.header('cache-control', 'no-store');
      return { here: here.publishes, ...publishPlaces(vhost, request.hostname, publish, client) };
    });

    app.get<{ Querystring: Partial<StreamParams> }>('/-/streams.json', async (request, reply) => {
      const vhost = registry.resolve(request.hostname);
      if (vhost === undefined) return pages.notFound(request, reply);
      const { app: application, stream } = request.query;
      const named = typeof application === 'string' && typeof stream === 'string';
      reply.header('cache-control', 'no-store');
      return shown(named ? await live.one(vhost, plays, { app: application, stream }) : await live.list(vhost, plays));
    });
  };
}

/** Streams of that application exist, or would make it. */
function takesStreams(vhost: VirtualHost, application: string): boolean {
  return vhost.applications.has(application) || vhost.template !== undefined;
}
