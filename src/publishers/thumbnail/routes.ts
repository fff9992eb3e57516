import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { checkAccess } from '../../access/gate.ts';
import type { Application } from '../../core/application.ts';
import type { Counters } from '../../core/counters.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { CrossDomainRules } from '../http/cors.ts';
import { answerError } from '../http/error.ts';
import { cacheControl, respond, type Answer } from '../http/respond.ts';
import type { PicturesElsewhere } from './elsewhere.ts';
import { newestPicture, type PicturesOf } from './newest-picture.ts';

/** What the routes ask the publisher for. */
export interface Gallery {
  readonly registry: Registry;
  readonly pictures: PicturesOf;
  readonly crossDomains: CrossDomainRules;
  readonly elsewhere: PicturesElsewhere;
}

interface Params {
  readonly app: string;
  readonly stream: string;
  readonly extension: string;
}

type Request = FastifyRequest<{ Params: Params }>;

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

/** @throws what `newestPicture` does, accessDenied, tooManyConnections */
async function serve(gallery: Gallery, request: Request, reply: FastifyReply): Promise<void> {
  const application = find(gallery, request);
  const { stream, extension } = request.params;
  reply.header('cache-control', cacheControl(0));
  if (application === undefined) throw kilnError('thumbnailStreamNotFound');
  gallery.crossDomains.apply(application, request, reply);
  checkAccess(application.vhost, 'publishers', 'thumbnail');
  const elsewhere = application.outputs.has(stream)
    ? undefined
    : await gallery.elsewhere.ask(application, stream, extension);
  if (elsewhere !== undefined) {
    const { answer, bytes } = elsewhere;
    send(application, application.counters, reply, { 'content-type': answer.type }, bytes);
    return;
  }
  const { output, type, picture } = newestPicture(gallery.pictures, application, stream, extension);
  send(application, output.counters, reply, { 'content-type': type }, picture);
}

/** A request is a connection as long as its answer is on the way: there is no session. @throws tooManyConnections */
function send(
  { config, counters: { publishers } }: Application,
  counters: Counters,
  reply: FastifyReply,
  headers: Answer['headers'],
  picture: Buffer,
): void {
  const limit = config.publishers.thumbnail?.maxConnection ?? 0;
  if (limit > 0 && publishers.thumbnail >= limit) throw kilnError('tooManyConnections', limit);
  reply.raw.once('close', counters.viewer('thumbnail'));
  respond(reply, { status: 200, headers, body: [picture] }, (bytes) => counters.sent(bytes));
}
