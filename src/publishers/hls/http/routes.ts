import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { isGuarded } from '../../../config/enables.ts';
import { withoutToken } from '../../../access/jwt/guard.ts';
import { goneSignal } from '../../../access/http-request.ts';
import type { Arrival } from '../../../access/redirects.ts';
import { checkPresent } from '../../../access/request.ts';
import type { Application } from '../../../core/application.ts';
import { exchangeOf, type Exchange } from '../answer/exchange.ts';
import { childPrefix } from '../answer/names.ts';
import { termsOf } from '../answer/token.ts';
import { holdNewOn } from '../blocking-reload/held-requests.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { MANIFEST } from '../steering/manifest.ts';
import { readStart, withoutStart } from '../rewind/start-offset.ts';
import { answering } from './answering.ts';
import { noteReport, serveChild } from './children.ts';
import { applicationOf, queryOf, type Directory, type Params } from './directory.ts';
import { directChildren } from './direct-children.ts';
import { KIND, kindConstraint } from './kind-constraint.ts';
import { serveManifest, steeringFor } from './steering.ts';
import { reportRoutes } from './report-routes.ts';
import { respond } from './respond.ts';
import { sendNothing, sendText, STARTING_STATUS } from './send.ts';

type Request = FastifyRequest<{ Params: Params }>;

/** Names of playlists, media and steering manifests only: other modules share the port. */
const FILE = ':file(^(?:.+\\.(?:m3u8|m4s|ts|vtt)|steering\\.json)$)';
const REDIRECT_STATUS = 307;

export type PlaylistHandler = (request: Request, reply: FastifyReply) => void;

/** Answers requests for playlists and media. */
export function playlistHandler(form: HlsForm, directory: Directory): PlaylistHandler {
  return (request, reply) =>
    answering(form, directory, request.params, exchangeOf(request, reply), (exchange) =>
      serve(form, directory, request, exchange),
    );
}

/** HTTP routes of a kind of HLS: `/app/stream/file` and `/app/stream/token/file`. */
export function playlistRoutes(form: HlsForm, directory: Directory, handler: PlaylistHandler): FastifyPluginAsync {
  return async (app) => {
    app.interceptors?.push(directChildren(form, directory, app.log));
    app.setErrorHandler((error: Error, request: Request, reply) =>
      answering(form, directory, request.params ?? {}, exchangeOf(request, reply), () => {
        throw error;
      }),
    );
    if (!app.hasConstraintStrategy(KIND)) app.addConstraintStrategy(kindConstraint);
    const constraints = form.inTs ? { [KIND]: 'ts' } : {};
    await app.register(reportRoutes(form, directory));
    for (const url of [`/:app/:stream/${FILE}`, `/:app/:stream/:token/${FILE}`]) {
      app.route<{ Params: Params }>({ method: ['GET', 'HEAD'], url, constraints, exposeHeadRoute: false, handler });
      app.route<{ Params: Params }>({
        method: 'OPTIONS',
        url,
        constraints,
        handler: (request, reply) => {
          const exchange = exchangeOf(request, reply);
          const application = applicationOf(form, directory, request.params, request.hostname);
          if (application !== undefined) directory.crossDomains.apply(application, exchange);
          respond(exchange, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
        },
      });
    }
  };
}

function serve(form: HlsForm, directory: Directory, request: Request, exchange: Exchange): Promise<void> | void {
  const { params, url } = request;
  const master = params.token === undefined ? form.master(params.file) : undefined;
  const arrival = master === undefined ? undefined : directory.redirects.arrival(request);
  const application = applicationOf(form, directory, params, arrival?.hostName ?? request.hostname);
  if (application !== undefined) directory.crossDomains.apply(application, exchange);
  if (params.file === MANIFEST) return serveManifest(form, directory, application, request, exchange);
  if (master === undefined || arrival === undefined)
    return serveChild(form, directory, application, params, queryOf(url), exchange);
  const better = application && betterUrl(form, directory, application, arrival, request);
  if (better === undefined) return serveMaster(form, directory, master, arrival, request, exchange);
  directory.counts.answered('master', REDIRECT_STATUS);
  return respond(exchange, { status: REDIRECT_STATUS, headers: { location: better }, body: [] });
}

/** Redirect target for a master playlist; none in OriginMode, which caches use. */
function betterUrl(
  form: HlsForm,
  { redirects, crossDomains }: Directory,
  application: Application,
  arrival: Arrival,
  { params: { app, stream }, url: path }: Request,
): string | undefined {
  if (form.config(application)?.originMode !== false || !crossDomains.followRedirects(application)) return undefined;
  return redirects.better(arrival, { module: form.module, app, stream, path });
}

/** Admits a viewer. The session in the playlist's URLs covers its further requests. */
async function serveMaster(
  form: HlsForm,
  directory: Directory,
  name: string,
  arrival: Arrival,
  request: Request,
  exchange: Exchange,
): Promise<void> {
  const { registry, access, crossDomains, stream: find } = directory;
  const { app, stream: asked } = request.params;
  const { search, isRedirected: _, ...asking } = arrival;
  const query = new URLSearchParams(search);
  const since = Date.now();
  const signal = goneSignal(exchange.response);
  const hold = holdNewOn(exchange, access.waitingOfOne, arrival.client.realAddress);
  const viewer = {
    direction: 'outgoing',
    protocol: form.kind,
    app,
    stream: asked,
    playlist: name,
    query,
    ...asking,
    signal,
  } as const;
  const requested = registry.resolve(arrival.hostName);
  const guarded = requested !== undefined && isGuarded(requested.config, viewer);
  const searchWithoutToken = requested === undefined ? search : withoutToken(search, requested.config, viewer);
  // virtual host to which the player sends requests for children
  const here = registry.resolve(request.hostname);
  const plays = request.method !== 'HEAD';
  const admitted = await access.admitViewer(viewer, async (application, streamName, playlist = name, grant) => {
    crossDomains.apply(application, exchange);
    const start = form.config(application)?.dvr?.enable === true ? readStart(query) : undefined;
    const played = await find(application, streamName, query);
    checkPresent(signal);
    // a player that a guard redirected to another stream asks for its children there
    const isAsked = application.name === app && streamName === asked;
    const base = isAsked ? undefined : childPrefix(2, application.name, streamName);
    const steering = steeringFor(form, directory, application, playlist, request);
    // the host of a node may be that of no virtual host
    const isFound = application.vhost === here && steering === undefined;
    const vhost = isFound ? undefined : application.vhost.name;
    const terms = termsOf(grant, guarded, vhost);
    const rest = start === undefined ? searchWithoutToken : withoutStart(searchWithoutToken);
    const options = { file: playlist, query: rest, start, steering, plays, base, terms, grant, signal, since, hold };
    return played && { ...played, application, streamName, master: await played.viewers.master(options) };
  });
  const { stream, viewers, master, application, streamName } = admitted.found;
  if (master === undefined) admitted.end('the stream has not started');
  else if (!plays) admitted.end('the playlist itself was not asked for');
  else if (stream.config.originMode) admitted.end('there are no sessions in OriginMode');
  if (master === undefined) {
    directory.counts.answered('master', STARTING_STATUS);
    return sendNothing(exchange);
  }
  directory.counts.answered('master', 200);
  noteReport(directory, application, streamName, stream, queryOf(request.url), exchange);
  const { text, viewer: player } = master;
  // a cache does not know a token in a header, and would hand on the session that it has opened
  const maxAge = guarded && arrival.bearer !== undefined ? 0 : stream.config.cacheControl.masterPlaylistMaxAge;
  return sendText(text, maxAge, exchange, (bytes) => viewers.sent(bytes, player));
}
