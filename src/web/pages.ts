import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { loadAssets, type Assets, type PageName } from './assets.ts';
import type { LiveStreams } from './live-streams.ts';
import type { PlayablePublisher } from './streams.ts';

export interface PagesOptions {
  readonly registry: Registry;
  readonly live: LiveStreams;
  /** The publishers that answer on the same port: the pages offer no other. */
  readonly serves: readonly PlayablePublisher[];
}

/** The pages load their own files and talk to their own server, and nothing else. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ');

const REVALIDATE = 'no-cache';
const FOR_EVER = 'public, max-age=31536000, immutable';

interface StreamParams {
  app: string;
  stream: string;
}

/**
 * The list of live streams at `/`, a player at `/:app/:stream`, what both show at `/-/streams.json`,
 * and their files under `/-/assets/`. Needs no authorization: all of it is for viewers.
 * Register it on every port of a viewer's publisher.
 */
export function pagesRoutes({ registry, live, serves }: PagesOptions): FastifyPluginAsync {
  let loading: Promise<Assets> | undefined;
  return async (app) => {
    const assets = await (loading ??= loadAssets());

    app.addHook('onSend', async (_request, reply) => {
      reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer');
    });

    const page = (name: PageName, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
      reply.header('content-security-policy', CONTENT_SECURITY_POLICY);
      return assets.pages[name].send(request, reply, REVALIDATE);
    };
    const notFound = (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
      page('not-found.html', request, reply.code(404));

    app.get('/', async (request, reply) => {
      if (registry.resolve(request.hostname) === undefined) return notFound(request, reply);
      return page('index.html', request, reply);
    });

    app.get<{ Params: StreamParams }>('/:app/:stream', async (request, reply) => {
      const vhost = registry.resolve(request.hostname);
      if (vhost === undefined || !takesStreams(vhost, request.params.app)) return notFound(request, reply);
      return page('player.html', request, reply);
    });

    app.get<{ Querystring: Partial<StreamParams> }>('/-/streams.json', async (request, reply) => {
      const vhost = registry.resolve(request.hostname);
      if (vhost === undefined) return notFound(request, reply);
      const { app: application, stream } = request.query;
      const named = typeof application === 'string' && typeof stream === 'string';
      reply.header('cache-control', 'no-store');
      return named ? live.one(vhost, serves, { app: application, stream }) : live.list(vhost, serves);
    });

    app.get<{ Params: { '*': string } }>('/-/assets/*', async (request, reply) => {
      const [name = '', build] = request.params['*'].split('/').reverse();
      const file = assets.files.get(name);
      if (file === undefined) return notFound(request, reply);
      return file.send(request, reply, build === assets.build ? FOR_EVER : REVALIDATE);
    });
  };
}

/** Streams of that application exist, or would make it. */
function takesStreams(vhost: VirtualHost, application: string): boolean {
  return vhost.applications.has(application) || vhost.template !== undefined;
}
