import type { Socket } from 'node:net';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import { checkAccess } from '../../access/gate.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { CrossDomainRules } from '../http/cors.ts';
import { answerError } from '../http/error.ts';
import { handedOn, parseDirectives } from './directives.ts';
import type { Player } from './session.ts';
import { acceptsGzip, byteRange, cacheControl, respond, sliceRange } from '../http/respond.ts';
import type { Rendition } from './rendition.ts';
import type { LlhlsStream, Resource } from './stream.ts';
import { Text } from './text.ts';
import type { Outcome } from './waiters.ts';

/** What the routes ask the publisher for. */
export interface Directory {
  readonly registry: Registry;
  stream(application: Application, name: string): LlhlsStream | undefined;
  readonly crossDomains: CrossDomainRules;
}

interface Params {
  readonly app: string;
  readonly stream: string;
  readonly file: string;
  readonly token?: string;
}

type Request = FastifyRequest<{ Params: Params }>;
type Viewer = Player | undefined;

const PLAYLIST_TYPE = 'application/vnd.apple.mpegurl';
const MEDIA_TYPES = { video: 'video/mp4', audio: 'audio/mp4' } as const;
/** Only names of playlists and media: the port is shared with others who know the rest. */
const FILE = ':file(^.+\\.m(?:3u8|4s)$)';
/** Requests of one connection that are held at once: players, and caches in front of them, send one after the other. */
const MAX_HELD = 4;
const heldOn = new WeakMap<Socket, number>();
const CHILD = /^(chunklist|init|seg|part)_/;

/** The HTTP face of LL-HLS: `/app/stream/file` and `/app/stream/token/file`. */
export function llhlsRoutes(directory: Directory): FastifyPluginAsync {
  const handler = (request: Request, reply: FastifyReply) => serve(directory, request, reply);
  return async (app) => {
    app.setErrorHandler(refuse);
    for (const url of [`/:app/:stream/${FILE}`, `/:app/:stream/:token/${FILE}`]) {
      app.route<{ Params: Params }>({ method: ['GET', 'HEAD'], url, exposeHeadRoute: false, handler });
      app.route<{ Params: Params }>({
        method: 'OPTIONS',
        url,
        handler: (request, reply) => {
          const application = find(directory, request);
          if (application !== undefined) directory.crossDomains.apply(application, request, reply);
          respond(reply, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
        },
      });
    }
  };
}

/** A refused player learns nothing (facts/03-access-control.md). */
function refuse(error: Error, request: FastifyRequest, reply: FastifyReply): void {
  if (error instanceof KilnError && error.status === 401) reply.code(401).type('text/plain; charset=utf-8').send('');
  else answerError(error, request, reply);
}

/** Answers at once where it can; the promise is of a request that waits. */
function serve(directory: Directory, request: Request, reply: FastifyReply): Promise<void> | void {
  const { app, stream: name, file, token } = request.params;
  const application = find(directory, request);
  // an error is not for caches: what is missing now may be there in a moment
  reply.header('cache-control', 'no-cache, no-store');
  if (application === undefined) throw kilnError('streamNotFound', `${app}/${name}`);
  directory.crossDomains.apply(application, request, reply);
  checkAccess(application.vhost, 'publishers', 'llhls');
  const stream = directory.stream(application, name);
  if (stream === undefined) throw kilnError('streamNotFound', `${application.internalName}/${name}`);
  if (token === undefined && file.endsWith('.m3u8') && !CHILD.test(file)) return serveMaster(stream, request, reply);
  const viewer = admit(stream, token, file);
  const resource = stream.file(file);
  if (resource === undefined) throw kilnError('fileNotFound');
  if (resource.kind === 'chunklist') return serveChunklist(stream, resource, viewer, request, reply);
  if (resource.kind === 'hint') return serveHint(stream, resource, viewer, request, reply);
  serveMedia(stream, resource, viewer, request, reply);
}

function find({ registry }: Directory, request: Request): Application | undefined {
  const vhost = registry.resolve(request.hostname);
  const application = vhost?.applications.get(request.params.app);
  return application?.config.publishers.llhls === undefined ? undefined : application;
}

/**
 * The player behind a child URL; undefined where it is not counted.
 * @throws playlistSessionRefused, tooManyConnections, fileNotFound
 */
function admit(stream: LlhlsStream, token: string | undefined, file: string): Viewer {
  if (stream.config.originMode) {
    if (token !== undefined) throw kilnError('fileNotFound');
    return undefined;
  }
  if (token === undefined) throw kilnError(CHILD.test(file) ? 'playlistSessionRefused' : 'fileNotFound');
  if (!stream.players.knows(token)) limitConnections(stream);
  const player = stream.players.admit(token, Date.now());
  if (player === undefined) throw kilnError('playlistSessionRefused');
  return player === 'uncounted' ? undefined : player;
}

function limitConnections({ application, config }: LlhlsStream): void {
  const { maxConnection } = config;
  if (maxConnection > 0 && application.counters.publishers.llhls >= maxConnection) {
    throw kilnError('tooManyConnections', maxConnection);
  }
}

function serveMaster(stream: LlhlsStream, request: Request, reply: FastifyReply): Promise<void> | void {
  const playlist = stream.output.playlist(request.params.file.slice(0, -'.m3u8'.length));
  const state = playlist === undefined ? 'empty' : stream.state(playlist);
  if (playlist === undefined || state === 'empty') throw kilnError('fileNotFound');
  if (state === 'starting') {
    respond(reply, { status: 201, headers: {}, body: [] });
    return;
  }
  const { originMode, cacheControl: ages } = stream.config;
  if (!originMode) limitConnections(stream);
  const query = queryOf(request);
  const token = originMode ? undefined : stream.players.issue(new URLSearchParams(query));
  const text = new Text(stream.master(playlist, token, handedOn(query)));
  return sendText(stream, text, ages.masterPlaylistMaxAge, undefined, request, reply);
}

function serveChunklist(
  stream: LlhlsStream,
  { rendition }: Extract<Resource, { kind: 'chunklist' }>,
  viewer: Viewer,
  request: Request,
  reply: FastifyReply,
): Promise<void> | void {
  const directives = parseDirectives(queryOf(request));
  const { part, legacy } = directives;
  if (!rendition.begun) {
    respond(reply, { status: 201, headers: {}, body: [] });
    return;
  }
  // many players take a playlist without a complete segment for an empty one
  const msn = directives.msn ?? (rendition.packager.window.kept.length === 0 ? rendition.packager.msn : undefined);
  const wanted = legacy ? undefined : part;
  const send = () => {
    const { chunklistMaxAge, chunklistWithDirectivesMaxAge } = stream.config.cacheControl;
    const age = directives.msn === undefined ? chunklistMaxAge : chunklistWithDirectivesMaxAge;
    const form = legacy ? 'legacy' : directives.skip ? 'delta' : 'full';
    return sendText(stream, stream.chunklist(rendition, form), age, viewer, request, reply);
  };
  if (msn === undefined || rendition.has(msn, wanted)) return send();
  if (rendition.tooFar(msn, part)) throw kilnError('playlistDirective', 'too far ahead');
  return hold(stream, rendition, () => rendition.has(msn, wanted), reply).then((outcome) => {
    if (viewer !== undefined) viewer.lastSeen = Date.now();
    if (outcome === 'ready') return send();
    throw outcome === 'overdue' ? kilnError('playlistOverdue') : kilnError('fileNotFound');
  });
}

/** A part that a preload hint told of: held until it exists, or the segment ended without it. */
function serveHint(
  stream: LlhlsStream,
  { rendition, msn, part }: Extract<Resource, { kind: 'hint' }>,
  viewer: Viewer,
  request: Request,
  reply: FastifyReply,
): Promise<void> | void {
  const { file } = request.params;
  const decided = () => stream.file(file)?.kind !== 'hint' || rendition.has(msn, part);
  return hold(stream, rendition, decided, reply).then((outcome) => {
    if (outcome === 'overdue') throw kilnError('playlistOverdue');
    const resource = stream.file(file);
    if (resource === undefined || resource.kind !== 'part') throw kilnError('fileNotFound');
    serveMedia(stream, resource, viewer, request, reply);
  });
}

function serveMedia(
  stream: LlhlsStream,
  { kind, rendition, body }: Extract<Resource, { body: unknown }>,
  viewer: Viewer,
  request: Request,
  reply: FastifyReply,
): void {
  const { segmentMaxAge, partialSegmentMaxAge } = stream.config.cacheControl;
  const { type } = rendition.packager.track;
  const headers: Record<string, string> = { 'content-type': MEDIA_TYPES[type], 'accept-ranges': 'bytes' };
  cache(reply, headers, kind === 'part' ? partialSegmentMaxAge : segmentMaxAge);
  const onSent = counter(stream, viewer);
  const { range: wanted } = request.headers;
  if (wanted === undefined) {
    respond(reply, { status: 200, headers, body }, onSent);
    return;
  }
  const length = body.reduce((sum, part) => sum + part.length, 0);
  const range = byteRange(wanted, length);
  if (range === undefined) {
    respond(reply, { status: 200, headers, body }, onSent);
  } else if (range === 'unsatisfiable') {
    respond(reply, { status: 416, headers: { ...headers, 'content-range': `bytes */${length}` }, body: [] });
  } else {
    const { first, last } = range;
    headers['content-range'] = `bytes ${first}-${last}/${length}`;
    respond(reply, { status: 206, headers, body: sliceRange(body, first, last) }, onSent);
  }
}

function sendText(
  stream: LlhlsStream,
  text: Text,
  maxAge: number,
  viewer: Viewer,
  request: Request,
  reply: FastifyReply,
): Promise<void> | void {
  const vary = reply.getHeader('vary');
  const headers: Record<string, string> = {
    'content-type': PLAYLIST_TYPE,
    vary: vary === undefined ? 'Accept-Encoding' : `${vary}, Accept-Encoding`,
  };
  cache(reply, headers, maxAge);
  const onSent = counter(stream, viewer);
  if (!acceptsGzip(request.headers['accept-encoding'])) {
    respond(reply, { status: 200, headers, body: [text.plain] }, onSent);
    return;
  }
  headers['content-encoding'] = 'gzip';
  const gzipped = text.gzipped();
  if (Buffer.isBuffer(gzipped)) {
    respond(reply, { status: 200, headers, body: [gzipped] }, onSent);
    return;
  }
  return gzipped.then((bytes) => respond(reply, { status: 200, headers, body: [bytes] }, onSent));
}

function cache(reply: FastifyReply, headers: Record<string, string>, maxAge: number): void {
  const value = cacheControl(maxAge);
  if (value === undefined) reply.removeHeader('cache-control');
  else headers['cache-control'] = value;
}

function counter({ output }: LlhlsStream, viewer: Viewer): (bytes: number) => void {
  return (bytes) => {
    const now = Date.now();
    output.counters.sent(bytes, now);
    viewer?.out.add(bytes, now);
  };
}

/**
 * Holds a request until what it is for is decided, or the client leaves.
 * @throws tooManyWaiting
 */
function hold(stream: LlhlsStream, rendition: Rendition, ready: () => boolean, reply: FastifyReply): Promise<Outcome> {
  const { socket } = reply.request.raw;
  const held = heldOn.get(socket) ?? 0;
  const onLeft = (cancel: () => void) => reply.raw.once('close', cancel);
  const waiting = held < MAX_HELD ? stream.wait(rendition, ready, onLeft) : undefined;
  if (waiting === undefined) throw kilnError('tooManyWaiting');
  heldOn.set(socket, held + 1);
  return waiting.finally(() => heldOn.set(socket, (heldOn.get(socket) ?? 1) - 1));
}

function queryOf({ url }: Request): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at + 1);
}
