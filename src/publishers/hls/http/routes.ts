import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from '../../../access/access.ts';
import { isGuarded } from '../../../config/enables.ts';
import { goneSignal } from '../../../access/http-request.ts';
import type { Arrival, Redirects } from '../../../access/redirects.ts';
import { checkPresent } from '../../../access/request.ts';
import type { Application } from '../../../core/application.ts';
import type { Viewing } from '../../../core/counters.ts';
import type { Registry } from '../../../core/registry.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import type { CrossDomainRules } from './cors.ts';
import { answerError } from './http-error.ts';
import { respond } from './respond.ts';
import type { FileAnswer, PlayedStream, Viewer } from '../answer/played-stream.ts';
import type { FileKind, PlaylistCounts } from '../answer/counts.ts';
import { parseDirectives } from '../blocking-reload/directives.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { holdNewOn, holdOn } from '../blocking-reload/held-requests.ts';
import { KIND, kindConstraint } from './kind-constraint.ts';
import { childPrefix } from '../answer/names.ts';
import type { Redirected } from './redirected.ts';
import { sendMedia, sendNothing, sendText } from './send.ts';
import type { SessionTokens } from '../answer/token.ts';

type Found = PlayedStream | undefined;

export interface Directory {
  readonly registry: Registry;
  readonly access: Access;
  /**
   * Finds a stream on this node or another one.
   * @param query of a new viewer, for which the stream may be fetched from an origin
   */
  stream(application: Application, name: string, query: URLSearchParams | undefined): Found | Promise<Found>;
  tokens(application: Application, name: string): SessionTokens;
  readonly redirected: Redirected;
  readonly redirects: Redirects;
  readonly crossDomains: CrossDomainRules;
  readonly counts: PlaylistCounts;
}

interface Params {
  readonly app: string;
  readonly stream: string;
  readonly file: string;
  readonly token?: string;
}

type Request = FastifyRequest<{ Params: Params }>;

/** Names of playlists and media only: other modules share the port. */
const FILE = ':file(^.+\\.(?:m3u8|m4s|ts)$)';
const PLAYLIST = '.m3u8';
/** Status of `sendNothing`. */
const STARTING_STATUS = 201;
const REDIRECT_STATUS = 307;
/** Seconds. Without sessions only the players' own caches restrain those that ask without a pause. */
const ORIGIN_CHUNKLIST_AGE = 1;

/** HTTP routes of a kind of HLS: `/app/stream/file` and `/app/stream/token/file`. */
export function playlistRoutes(form: HlsForm, directory: Directory): FastifyPluginAsync {
  const handler = (request: Request, reply: FastifyReply) => serve(form, directory, request, reply);
  return async (app) => {
    app.setErrorHandler((error: Error, request, reply) => {
      refuse(error, request, reply);
      countRefusal(form, directory, error, request, reply);
    });
    if (!app.hasConstraintStrategy(KIND)) app.addConstraintStrategy(kindConstraint);
    const constraints = form.inTs ? { [KIND]: 'ts' } : {};
    for (const url of [`/:app/:stream/${FILE}`, `/:app/:stream/:token/${FILE}`]) {
      app.route<{ Params: Params }>({ method: ['GET', 'HEAD'], url, constraints, exposeHeadRoute: false, handler });
      app.route<{ Params: Params }>({
        method: 'OPTIONS',
        url,
        constraints,
        handler: (request, reply) => {
          const application = find(form, directory, request);
          if (application !== undefined) directory.crossDomains.apply(application, request, reply);
          respond(reply, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
        },
      });
    }
  };
}

/** Hides the reason from a rejected player (docs/compatibility.md#signed-urls). */
function refuse(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof KilnError && error.status === 401) reply.code(401).type('text/plain; charset=utf-8').send('');
  else answerError(error, request, reply);
}

/** Answers synchronously where possible; returns a promise for a request that waits. */
function serve(form: HlsForm, directory: Directory, request: Request, reply: FastifyReply): Promise<void> | void {
  const { app, stream: name, file, token } = request.params;
  // caches must not keep errors: a missing file may soon exist
  reply.header('cache-control', 'no-cache, no-store');
  const master = token === undefined ? form.master(file) : undefined;
  const arrival = master === undefined ? undefined : directory.redirects.arrival(request);
  const application = find(form, directory, request, arrival);
  if (application !== undefined) directory.crossDomains.apply(application, request, reply);
  if (master !== undefined && arrival !== undefined) {
    const better = application && betterUrl(form, directory, application, arrival, request);
    if (better === undefined) return serveMaster(form, directory, master, arrival, request, reply);
    directory.counts.answered('master', REDIRECT_STATUS);
    return respond(reply, { status: REDIRECT_STATUS, headers: { location: better }, body: [] });
  }
  if (application === undefined) throw kilnError('streamNotFound', `${app}/${name}`);
  return after(directory.stream(application, name, undefined), (played) => {
    if (played === undefined) throw notThere(form, directory, application, request);
    return after(admit(form, directory, application, played, request), (viewer) =>
      serveFile(form, directory, played, viewer, request, reply),
    );
  });
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

/** Error for a missing stream: where access control is configured, only admitted players learn that it is missing. */
function notThere(form: HlsForm, { tokens }: Directory, application: Application, { params }: Request): KilnError {
  const { stream: name, token } = params;
  const isPlayer = token !== undefined && tokens(application, name).verify(token) !== undefined;
  if (isPlayer || !isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind }))
    return kilnError('streamNotFound', `${application.internalName}/${name}`);
  return kilnError('playlistSessionRefused');
}

function find(
  form: HlsForm,
  { registry, redirected }: Directory,
  request: Request,
  arrival?: Arrival,
): Application | undefined {
  const { app, stream, token } = request.params;
  const sentTo = token === undefined ? undefined : redirected.find(app, stream, token);
  const application = sentTo ?? registry.resolve(arrival?.hostName ?? request.hostname)?.applications.get(app);
  return application === undefined || form.config(application) === undefined ? undefined : application;
}

/** @throws as PlayedViewers.admit; fileNotFound */
function admit(
  form: HlsForm,
  { tokens }: Directory,
  application: Application,
  { stream, viewers }: PlayedStream,
  { params: { stream: name, token, file } }: Request,
): Viewer | undefined | Promise<Viewer | undefined> {
  if (stream.config.originMode) {
    if (token !== undefined && !tokens(application, name).isRoute(token)) throw kilnError('fileNotFound');
    return undefined;
  }
  if (token === undefined) throw kilnError(form.isChild(file) ? 'playlistSessionRefused' : 'fileNotFound');
  return viewers.admit(token);
}

/** Admits a viewer. The session in the playlist's URLs covers its further requests. */
async function serveMaster(
  form: HlsForm,
  directory: Directory,
  name: string,
  arrival: Arrival,
  request: Request,
  reply: FastifyReply,
): Promise<void> {
  const { registry, access, crossDomains, stream: find } = directory;
  const { app, stream: asked } = request.params;
  const { search, isRedirected: _, ...asking } = arrival;
  const query = new URLSearchParams(search);
  const since = Date.now();
  const signal = goneSignal(reply.raw);
  const hold = holdNewOn(reply, access.waitingOfOne, arrival.client.realAddress);
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
  // virtual host to which the player sends requests for children
  const here = registry.resolve(request.hostname);
  const plays = request.method !== 'HEAD';
  const admitted = await access.admitViewer(viewer, async (application, streamName, playlist = name, grant) => {
    crossDomains.apply(application, request, reply);
    const played = await find(application, streamName, query);
    checkPresent(signal);
    // a player that a guard redirected to another stream asks for its children there
    const isAsked = application.name === app && streamName === asked;
    const base = isAsked ? undefined : childPrefix(2, application.name, streamName);
    const vhost = application.vhost === here ? undefined : application.vhost.name;
    const terms = { until: grant.until, guarded, vhost, openings: grant.openings };
    const options = { file: playlist, query: search, plays, base, terms, grant, signal, since, hold };
    return played && { ...played, master: await played.viewers.master(options) };
  });
  const { stream, viewers, master } = admitted.found;
  if (master === undefined) admitted.end('the stream has not started');
  else if (!plays) admitted.end('the playlist itself was not asked for');
  else if (stream.config.originMode) admitted.end('there are no sessions in OriginMode');
  if (master === undefined) {
    directory.counts.answered('master', STARTING_STATUS);
    return sendNothing(reply);
  }
  directory.counts.answered('master', 200);
  const { text, viewer: player } = master;
  return sendText(text, stream.config.cacheControl.masterPlaylistMaxAge, reply, (bytes) => viewers.sent(bytes, player));
}

function serveFile(
  form: HlsForm,
  { registry, counts }: Directory,
  { stream, viewers }: PlayedStream,
  viewer: Viewer | undefined,
  request: Request,
  reply: FastifyReply,
): Promise<void> | void {
  const { file } = request.params;
  const directives = parseDirectives(form.directives && file.endsWith(PLAYLIST) ? queryOf(request) : '');
  const { cacheControl: ages } = stream.config;
  const onSent = (bytes: number): void => viewers.sent(bytes, viewer);
  return after(stream.file(file, directives, holdOn(reply), viewer), (answer: FileAnswer) => {
    if (answer.kind === 'starting') {
      counts.answered('chunklist', STARTING_STATUS);
      return sendNothing(reply);
    }
    counts.answered(answer.kind, 200);
    if (answer.kind === 'chunklist') {
      const { chunklistMaxAge = stream.config.originMode ? ORIGIN_CHUNKLIST_AGE : 0 } = ages;
      const age = answer.asNamed ? ages.chunklistWithDirectivesMaxAge : chunklistMaxAge;
      return sendText(answer.text, age, reply, onSent);
    }
    if (answer.kind !== 'init' && viewer !== undefined) noteJoin(registry.counters.viewing, form.kind, viewer);
    return sendMedia(answer, answer.kind === 'part' ? ages.partialSegmentMaxAge : ages.segmentMaxAge, reply, onSent);
  });
}

/** Counts an error; one after a full wait is a stall, since the player's next media did not come. */
function countRefusal(
  form: HlsForm,
  { registry, counts }: Directory,
  error: Error,
  request: FastifyRequest,
  { statusCode }: FastifyReply,
): void {
  const { file = '', token } = request.params as Partial<Params>;
  counts.answered(kindOf(form, file, token), statusCode);
  if (error instanceof KilnError && error.code === 'playlistOverdue') registry.counters.viewing.stalls[form.kind]++;
}

function kindOf(form: HlsForm, file: string, token: string | undefined): FileKind {
  if (token === undefined && form.master(file) !== undefined) return 'master';
  if (file.endsWith(PLAYLIST)) return 'chunklist';
  return form.mediaKind(file) ?? 'other';
}

/** A player with an older token resumes its session: this is no join. */
const MAX_JOIN_MS = 60_000;
const joined = new WeakSet<Viewer>();

function noteJoin(viewing: Viewing, kind: HlsForm['kind'], viewer: Viewer): void {
  if (joined.has(viewer)) return;
  joined.add(viewer);
  const ms = Date.now() - viewer.createdTime;
  // the clock of the node that has issued the token may be ahead
  if (ms >= 0 && ms < MAX_JOIN_MS) viewing.joined(kind, ms / 1000);
}

/** Runs `go` now, or when the promise resolves. */
function after<T>(value: T | Promise<T>, go: (value: T) => Promise<void> | void): Promise<void> | void {
  return value instanceof Promise ? value.then(go) : go(value);
}

function queryOf({ url }: Request): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at + 1);
}
