import type { FastifyPluginAsync } from 'fastify';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { loadAssets, type Assets } from './assets.ts';
import type { LiveStreams } from './live-streams.ts';
import { Pages, wantsPage } from './page.ts';
import type { PlayablePublisher } from './streams.ts';

export interface PagesOptions {
  readonly registry: Registry;
  readonly live: LiveStreams;
  /** The publishers that answer on the same port: the pages offer no other. */
  readonly serves: readonly PlayablePublisher[];
}

interface StreamParams {
  app: string;
  stream: string;
}

/**
 * The list of live streams at `/`, a player at `/:app/:stream`, what both show at `/-/streams.json`,
 * their files under `/-/assets/`, and what answers where nothing is. Needs no authorization: all of it is for viewers.
 * Register it on every port of a viewer's publisher.
 */
export function pagesRoutes({ registry, live, serves }: PagesOptions): FastifyPluginAsync {
  let loading: Promise<Assets> | undefined;
  return async (app) => {
    const pages = new Pages(app, await (loading ??= loadAssets()));

    app.setNotFoundHandler(async (request, reply) => {
      reply.header('vary', 'accept');
      if (wantsPage(request)) return pages.notFound(request, reply);
      return reply.code(404).type('text/plain; charset=utf-8').send('Not found');
    });

    app.get('/', async (request, reply) => {
      if (registry.resolve(request.hostname) === undefined) return pages.notFound(request, reply);
      return pages.send('index.html', request, reply);
    });

    app.get<{ Params: StreamParams }>('/:app/:stream', async (request, reply) => {
      const vhost = registry.resolve(request.hostname);
      if (vhost === undefined || !takesStreams(vhost, request.params.app)) return pages.notFound(request, reply);
      return pages.send('player.html', request, reply);
    });

    app.get<{ Querystring: Partial<StreamParams> }>('/-/streams.json', async (request, reply) => {
      const vhost = registry.resolve(request.hostname);
      if (vhost === undefined) return pages.notFound(request, reply);
      const { app: application, stream } = request.query;
      const named = typeof application === 'string' && typeof stream === 'string';
      reply.header('cache-control', 'no-store');
      return named ? live.one(vhost, serves, { app: application, stream }) : live.list(vhost, serves);
    });
  };
}

/** Streams of that application exist, or would make it. */
function takesStreams(vhost: VirtualHost, application: string): boolean {
  return vhost.applications.has(application) || vhost.template !== undefined;
}
