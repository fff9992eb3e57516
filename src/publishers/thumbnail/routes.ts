import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { checkAccess } from '../../access/gate.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { ImageCodec } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { CrossDomainRules } from '../http/cors.ts';
import { answerError } from '../http/error.ts';
import { cacheControl, respond } from '../http/respond.ts';
import type { Pictures } from './pictures.ts';

/** What the routes ask the publisher for. */
export interface Gallery {
  readonly registry: Registry;
  readonly pictures: ReadonlyMap<OutputStream, Pictures>;
  readonly crossDomains: CrossDomainRules;
}

interface Params {
  readonly app: string;
  readonly stream: string;
  readonly extension: string;
}

type Request = FastifyRequest<{ Params: Params }>;

const FORMATS = new Map<string, readonly [codec: ImageCodec, type: string]>([
  ['jpg', ['JPEG', 'image/jpeg']],
  ['jpeg', ['JPEG', 'image/jpeg']],
  ['png', ['PNG', 'image/png']],
  ['webp', ['WEBP', 'image/webp']],
  ['avif', ['AVIF', 'image/avif']],
]);
/** The port is shared with LL-HLS, whose playlists may be called so too. */
const FILE = 'thumb.:extension(^(?!m3u8$|m4s$).+$)';

/** `/app/stream/thumb.jpg` and its like (facts/05-hls.md, Thumbnails): the newest picture, for nobody to keep. */
export function thumbnailRoutes(gallery: Gallery): FastifyPluginAsync {
  const url = `/:app/:stream/${FILE}`;
  return async (app) => {
    app.setErrorHandler(answerError);
    app.route<{ Params: Params }>({
      method: ['GET', 'HEAD'],
      url,
      exposeHeadRoute: false,
      handler: (request, reply) => serve(gallery, request, reply),
    });
    app.route<{ Params: Params }>({
      method: 'OPTIONS',
      url,
      handler: (request, reply) => {
        const application = find(gallery, request);
        if (application !== undefined) gallery.crossDomains.apply(application, request, reply);
        respond(reply, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
      },
    });
  };
}

function find({ registry }: Gallery, request: Request): Application | undefined {
  const application = registry.resolve(request.hostname)?.applications.get(request.params.app);
  return application?.config.publishers.thumbnail === undefined ? undefined : application;
}

/**
 * @throws thumbnailStreamNotFound, thumbnailNotStarted, thumbnailExtension, thumbnailMissing, accessDenied,
 * tooManyConnections
 */
function serve(gallery: Gallery, request: Request, reply: FastifyReply): void {
  const application = find(gallery, request);
  reply.header('cache-control', cacheControl(0));
  if (application === undefined) throw kilnError('thumbnailStreamNotFound');
  gallery.crossDomains.apply(application, request, reply);
  checkAccess(application.vhost, 'publishers', 'thumbnail');
  const output = application.outputs.get(request.params.stream);
  if (output === undefined) throw kilnError('thumbnailStreamNotFound');
  const pictures = gallery.pictures.get(output);
  if (pictures === undefined) throw kilnError('thumbnailNotStarted');
  const format = FORMATS.get(request.params.extension);
  if (format === undefined) throw kilnError('thumbnailExtension');
  const [codec, type] = format;
  if (output.resting) output.emit('wanted');
  const picture = pictures.newest(codec);
  if (picture === undefined) throw kilnError('thumbnailMissing');
  count(application, output, reply);
  respond(reply, { status: 200, headers: { 'content-type': type }, body: [picture] }, (bytes) => output.counters.sent(bytes));
}

/** A request is a connection as long as its answer is on the way: there is no session. */
function count({ config, counters }: Application, output: OutputStream, reply: FastifyReply): void {
  const limit = config.publishers.thumbnail?.maxConnection ?? 0;
  if (limit > 0 && counters.publishers.thumbnail >= limit) throw kilnError('tooManyConnections', limit);
  reply.raw.once('close', output.counters.viewer('thumbnail'));
}
