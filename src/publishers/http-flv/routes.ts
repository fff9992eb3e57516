import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { exchangeOf, type Exchange } from '../hls/answer/exchange.ts';
import { answerError } from '../hls/http/http-error.ts';
import { respond } from '../hls/http/respond.ts';
import type { Asked } from './index.ts';

export interface FileParams {
  readonly app: string;
  readonly stream: string;
}

interface PlaylistParams extends FileParams {
  readonly file: string;
}

export interface FileRoutesOptions {
  readonly serve: (asked: Asked, request: FastifyRequest, reply: FastifyReply) => void;
  /** Adds the CORS headers of an application to a response. */
  readonly allow: (app: string, request: FastifyRequest, exchange: Exchange) => void;
}

/** Patterns that the router does not take for those of other modules: it compares them without their regular expressions. */
const STREAMS = ['/:app/:stream.flv', '/:app/:stream.ts'];
/** Segments of HLS with MPEG-TS may share the port. */
const PLAYLISTS = ['/:app/:stream/:file.flv', '/:app/:stream/:file(^(?!seg_\\d+_\\d+_hls$).+$).ts'];
/** Methods of WebRTC's signalling too, whose preflights for a stream of such a name come here. */
const METHODS = 'DELETE, GET, HEAD, OPTIONS, PATCH, POST';

/** Routes of playlists, `/app/stream/playlist.flv`, and of preflights. Those of streams are the pages', which may have such a name. */
export function fileRoutes({ serve, allow }: FileRoutesOptions): FastifyPluginAsync {
  return async (app) => {
    app.setErrorHandler((error: Error, request, reply) => void answerError(error, exchangeOf(request, reply)));
    for (const url of PLAYLISTS)
      app.route<{ Params: PlaylistParams }>({
        method: ['GET', 'HEAD'],
        url,
        exposeHeadRoute: false,
        handler: (request, reply) => {
          const { app: name, stream, file } = request.params;
          const container = url.endsWith('.ts') ? 'ts' : 'flv';
          serve({ app: name, stream, playlist: file, container }, request, reply);
        },
      });
    for (const url of [...STREAMS, ...PLAYLISTS])
      app.route<{ Params: FileParams }>({
        method: 'OPTIONS',
        url,
        handler: (request, reply) => {
          const exchange = exchangeOf(request, reply);
          const { headers } = exchange;
          allow(request.params.app, request, exchange);
          if (headers['access-control-allow-methods'] !== undefined) headers['access-control-allow-methods'] = METHODS;
          respond(exchange, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
        },
      });
  };
}
