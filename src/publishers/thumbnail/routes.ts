import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { Access } from '../../access/access.ts';
import { goneSignal, httpAccess } from '../../access/http-request.ts';
import { HOLD_MS } from '../../access/starting.ts';
import type { Application } from '../../core/application.ts';
import type { Counters } from '../../core/counters.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { exchangeOf, type Exchange } from '../hls/answer/exchange.ts';
import type { CrossDomainRules } from '../hls/http/cors.ts';
import { answerError } from '../hls/http/http-error.ts';
import { NOT_CACHED, respond } from '../hls/http/respond.ts';
import type { RemoteThumbnails } from './remote-thumbnails.ts';
import { awaitedThumbnail, type ThumbnailsOf } from './newest-thumbnail.ts';

/** Services that the routes use. */
export interface ThumbnailServices {
  readonly registry: Registry;
  readonly access: Access;
  readonly thumbnails: ThumbnailsOf;
  readonly crossDomains: CrossDomainRules;
  readonly remote: RemoteThumbnails;
}

interface Params {
  readonly app: string;
  readonly stream: string;
  readonly extension: string;
}

type Request = FastifyRequest<{ Params: Params }>;

/** Excludes the extensions of LL-HLS, which shares the port and may use the same name. */
const FILE = 'thumb.:extension(^(?!m3u8$|m4s$).+$)';

/** Serves the newest thumbnail at `/app/stream/thumb.jpg` and its like (docs/compatibility.md#hls), not to be cached. */
export function thumbnailRoutes(services: ThumbnailServices): FastifyPluginAsync {
  const url = `/:app/:stream/${FILE}`;
  return async (app) => {
    app.setErrorHandler((error: Error, request, reply) => void answerError(error, exchangeOf(request, reply)));
    app.route<{ Params: Params }>({
      method: ['GET', 'HEAD'],
      url,
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const exchange = exchangeOf(request, reply);
        await serve(services, request, exchange).catch((error: Error) => answerError(error, exchange));
      },
    });
    app.route<{ Params: Params }>({
      method: 'OPTIONS',
      url,
      handler: (request, reply) => {
        const exchange = exchangeOf(request, reply);
        const application = findApplication(services, request);
        if (application !== undefined) services.crossDomains.apply(application, exchange);
        respond(exchange, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
      },
    });
  };
}

function findApplication({ registry }: ThumbnailServices, request: Request): Application | undefined {
  const application = registry.resolve(request.hostname)?.applications.get(request.params.app);
  return application?.config.publishers.thumbnail === undefined ? undefined : application;
}

/** Thumbnail with the counters for its bytes. */
interface ServedThumbnail {
  readonly counters: Counters;
  /** MIME type. */
  readonly type: string;
  readonly image: Buffer;
}

/** @throws as `awaitedThumbnail` and Access.admitViewer() */
async function serve(services: ThumbnailServices, request: Request, exchange: Exchange): Promise<void> {
  const { app, stream, extension } = request.params;
  const { headers, response } = exchange;
  headers['cache-control'] = NOT_CACHED;
  const present = findApplication(services, request);
  if (present !== undefined) services.crossDomains.apply(present, exchange);
  const viewer = {
    direction: 'outgoing',
    protocol: 'thumbnail',
    hostName: request.hostname,
    app,
    stream,
    query: new URLSearchParams(request.query as Record<string, string>),
    ...httpAccess(request.raw, request),
    signal: goneSignal(response),
  } as const;
  try {
    const { found, end } = await services.access.admitViewer(viewer, (owner, name) => {
      services.crossDomains.apply(owner, exchange);
      return findThumbnail(services, owner, name, extension, viewer.client.realAddress);
    });
    response.once('close', () => end('the thumbnail was sent'));
    const { counters, type, image } = found;
    // a request is a connection until its response is sent: there is no session
    response.once('close', counters.viewer('thumbnail'));
    respond(exchange, { status: 200, headers: { 'content-type': type }, body: [image] }, (bytes) =>
      counters.sentTo('thumbnail', bytes),
    );
  } catch (error) {
    throw error instanceof KilnError && NOT_FOUND.has(error.code) ? kilnError('thumbnailStreamNotFound') : error;
  }
}

/** Errors for which the interface has one of its own. */
const NOT_FOUND: ReadonlySet<string> = new Set(['vhostNotFound', 'applicationNotFound', 'streamNotFound']);

/**
 * @param address of the viewer, of which no more than so many may wait
 * @returns undefined when there is no such stream or it is starting
 * @throws as `awaitedThumbnail`; tooManyWaiting
 */
async function findThumbnail(
  { access, thumbnails, remote }: ThumbnailServices,
  application: Application,
  stream: string,
  extension: string,
  address: string,
): Promise<ServedThumbnail | undefined> {
  const here = application.outputs.get(stream);
  if (here === undefined) {
    const found = await remote.newest(application, stream, extension);
    return found && { counters: application.counters, type: found.answer.type, image: found.bytes };
  }
  if (!thumbnails.has(here)) return undefined;
  const leave = access.waitingOfOne.enter(address);
  const awaited = awaitedThumbnail(thumbnails, application, stream, extension, HOLD_MS);
  const { output, type, image } = await awaited.finally(leave);
  return { counters: output.counters, type, image };
}
