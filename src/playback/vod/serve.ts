import type { ServerResponse } from 'node:http';
import { goneSignal, httpAccess } from '../../access/http-request.ts';
import { isGuarded } from '../../config/enables.ts';
import type { Application } from '../../core/application.ts';
import { sessionId } from '../../core/session.ts';
import { kilnError } from '../../errors.ts';
import type { Exchange } from '../../publishers/hls/answer/exchange.ts';
import { childPrefix } from '../../publishers/hls/answer/names.ts';
import type { Redirected } from '../../publishers/hls/http/redirected.ts';
import { respond } from '../../publishers/hls/http/respond.ts';
import { sendText } from '../../publishers/hls/http/send.ts';
import { termsOf } from '../../publishers/hls/answer/token.ts';
import { readClip, type Clip } from '../query.ts';
import {
  admit,
  applicationOf,
  queryOf,
  viewerOf,
  type Params,
  type PlaybackRequest,
  type Viewers,
} from '../requests.ts';
import { sendPieces } from '../send-pieces.ts';
import type { PlaybackSessions } from '../sessions.ts';
import type { Slots } from '../slots.ts';
import { MEDIA_LIST } from './playlists.ts';
import type { Vods } from './vod.ts';

export interface VodServices extends Viewers {
  readonly vods: Vods;
  readonly sessions: PlaybackSessions;
  readonly redirected: Redirected;
  /** For requests of media. */
  readonly slots: Slots;
  /** For master playlists, whose recordings are looked for and opened. */
  readonly lookups: Slots;
}

export interface ChildParams extends Params {
  readonly token: string;
  /** Start and end, in milliseconds since the epoch. */
  readonly clip: string;
  readonly file: string;
}

const CLIP = /^(\d{1,15})-(\d{1,15})$/;
const INIT = /^([\w-]{1,64})\.mp4$/;
const SUBTITLE_LIST = /^subtitles_(\d{1,3})\.m3u8$/;
const CUES = /^([\w-]{1,64})_(\d{1,7})_(\d{1,3})\.vtt$/;
const SEGMENT = /^([\w-]{1,64})_(\d{1,7})\.m4s$/;
/** Seconds. Bytes of a name never change. */
const MEDIA_AGE = 3600;
const MEDIA_TYPE = 'video/mp4';
const CUES_TYPE = 'text/vtt; charset=utf-8';

/** Serves `/app/stream/recorded.m3u8`. The session in the URL of its media playlist covers all that follows. @throws as `serveGet` */
export async function serveMaster(services: VodServices, request: PlaybackRequest, exchange: Exchange): Promise<void> {
  const { registry, vods, sessions } = services;
  const query = queryOf(request);
  const clip = readClip(query, Date.now());
  const viewer = viewerOf(request, exchange);
  const here = registry.resolve(request.hostname);
  const guarded = here !== undefined && isGuarded(here.config, viewer);
  const plays = request.method !== 'HEAD';
  const { application, found, end } = await admit(services, viewer, exchange, async (owner, stream, grant) => {
    // what cannot be played begins no session
    await services.lookups.during(viewer.client.realAddress, () => vods.media(owner, stream, clip, viewer.signal));
    const vhost = owner.vhost === here ? undefined : owner.vhost.name;
    const terms = termsOf(grant, guarded, vhost);
    const name = nameOf(clip);
    const token = plays ? sessions.begin(owner, `${stream}/${name}`, sessionId(query), terms, grant) : '-';
    // a player that a guard redirected to another stream asks for its children there
    const isAsked = owner.name === viewer.app && stream === viewer.stream;
    const base = isAsked ? '' : childPrefix(2, owner.name, stream);
    return await vods.master(owner, stream, clip, `${base}${token}/recorded/${name}/`, viewer.signal);
  });
  if (!plays) end('the playlist itself was not asked for');
  await sendText(found, 0, exchange, (bytes) => application.counters.sentTo('playback', bytes));
}

/** Finds the application of a request that a session covers. */
export function applicationOfChild(
  services: VodServices,
  request: PlaybackRequest<ChildParams>,
): Application | undefined {
  const { app, stream, token, clip } = request.params;
  return services.redirected.find(app, `${stream}/${clip}`, token) ?? applicationOf(services, request);
}

/** Serves the media playlist and media of a clip. @throws fileNotFound, playbackBusy; as PlaybackSessions.admit and Vods */
export async function serveChild(
  services: VodServices,
  request: PlaybackRequest<ChildParams>,
  exchange: Exchange,
): Promise<void> {
  const application = applicationOfChild(services, request);
  const { stream, token, clip: name, file } = request.params;
  const clip = readName(name);
  if (application === undefined || clip === undefined) throw kilnError('fileNotFound');
  services.crossDomains.apply(application, exchange);
  const flow = services.sessions.admit(application, `${stream}/${name}`, token);
  const onSent = (bytes: number): void => {
    application.counters.sentTo('playback', bytes);
    flow?.add(bytes, Date.now());
  };
  const { vods } = services;
  const signal = goneSignal(exchange.response);
  if (file === MEDIA_LIST)
    return await sendText(await vods.media(application, stream, clip, signal), 0, exchange, onSent);
  const [, label] = SUBTITLE_LIST.exec(file) ?? [];
  if (label !== undefined)
    return await sendText(await vods.subtitles(application, stream, clip, Number(label), signal), 0, exchange, onSent);
  const headers = { 'content-type': MEDIA_TYPE, 'cache-control': `private, max-age=${MEDIA_AGE}` };
  const [, init] = INIT.exec(file) ?? [];
  if (init !== undefined) {
    const body = [await vods.init(application, stream, clip, init, signal)];
    return respond(exchange, { status: 200, headers, body }, onSent);
  }
  const [, of, at, labelOf] = CUES.exec(file) ?? [];
  if (of !== undefined) {
    const place = { id: of, number: Number(at), label: Number(labelOf) };
    const read = () => vods.cues(application, stream, clip, place, signal);
    const body = [await services.slots.during(httpAccess(request.raw, request).client.realAddress, read)];
    return respond(exchange, { status: 200, headers: { ...headers, 'content-type': CUES_TYPE }, body }, onSent);
  }
  const [, id, number] = SEGMENT.exec(file) ?? [];
  if (id === undefined) throw kilnError('fileNotFound');
  const leave = services.slots.enter(httpAccess(request.raw, request).client.realAddress);
  try {
    const pieces = await vods.segment(application, stream, clip, { id, number: Number(number) }, signal);
    // only its type is that of all frameworks
    const response = exchange.response as ServerResponse;
    response.writeHead(200, { ...exchange.headers, ...headers });
    if (request.method === 'HEAD') response.end();
    else await sendPieces(response, pieces, signal, onSent);
  } finally {
    leave();
  }
}

function nameOf({ start, end }: Clip): string {
  return `${start}-${end}`;
}

function readName(name: string): Clip | undefined {
  const [, start, end] = CLIP.exec(name) ?? [];
  return start === undefined ? undefined : { start: Number(start), end: Number(end) };
}
