import Type, { type Static } from 'typebox';
import type { Application } from '../core/application.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { Track } from '../core/track.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { isGuarded } from '../config/enables.ts';

/** Streams that one answer lists at most. */
export const MAX_LISTED = 200;

/** The playlists that publishers add by themselves, each playable by its own publisher alone. */
const DEFAULT_PLAYLISTS = { llhls: 'llhls_default', webrtc: 'webrtc_default', hls: 'hls_default' } as const;

/** Publishers that the player page plays. */
export type PlayablePublisher = 'llhls' | 'webrtc';

/** Services of a port that its pages use: playback, thumbnails and WHIP. */
export type ServedHere = PlayablePublisher | 'thumbnail' | 'whip';

const ShownVideo = Type.Object({
  codec: Type.String(),
  width: Type.Number(),
  height: Type.Number(),
  /** Frames per second, 0 while unknown. */
  framerate: Type.Number(),
});
type ShownVideo = Readonly<Static<typeof ShownVideo>>;

const ShownSubtitles = Type.Object({
  label: Type.String(),
  /** As configured. */
  language: Type.Optional(Type.String()),
  isDefault: Type.Optional(Type.Literal(true)),
  /** Shown also to viewers who asked for none. */
  forced: Type.Optional(Type.Literal(true)),
});

const LiveStream = Type.Object({
  app: Type.String(),
  stream: Type.String(),
  /** Start of the stream, in milliseconds since the epoch: another start, another value. */
  since: Type.Number(),
  /** The node that reports it relays it, and does not know since when it has been live. */
  relayed: Type.Optional(Type.Literal(true)),
  viewers: Type.Number(),
  /** The largest. */
  video: Type.Optional(ShownVideo),
  /** All codecs of its audio. */
  audio: Type.Optional(Type.Object({ codecs: Type.Array(Type.String()) })),
  /** Bits per second of the largest video and one audio; absent while unknown, and from nodes of earlier versions. */
  bitrate: Type.Optional(Type.Number()),
  /** File name under `/app/stream/` of its newest thumbnail; absent where there is no public one. */
  thumbnail: Type.Optional(Type.String()),
  /** Master playlists, as file names under `/app/stream/`; empty when LL-HLS is off. */
  llhls: Type.Array(Type.String()),
  /** Viewers can go back in LL-HLS: its application has `DVR`. */
  rewinds: Type.Optional(Type.Literal(true)),
  /** Playlists that WHEP and the WebSocket signalling take; empty when WebRTC is off. */
  webrtc: Type.Array(Type.String()),
  /** Subtitles of the first of `webrtc`, whose viewers get them by a data channel; absent where it has none. */
  subtitles: Type.Optional(Type.Array(ShownSubtitles)),
});

/** A live stream in its public form, without its source, sessions and configuration. */
export type LiveStream = Readonly<Static<typeof LiveStream>>;

/** Answer of a node that was asked for its live streams. */
export const StreamsAnswer = Type.Object({ streams: Type.Array(LiveStream) });

/** The live streams of a virtual host. */
export interface StreamList {
  /** The server's clock, in milliseconds since the epoch. */
  readonly now: number;
  /** Access control guards the viewers of this virtual host: nothing is listed. */
  readonly restricted: boolean;
  readonly streams: readonly LiveStream[];
  /** There are more than are listed. */
  readonly more: boolean;
}

/** Whether access control guards viewers: then streams are not listed. */
export function hidesStreams(vhost: VirtualHost): boolean {
  return (['llhls', 'webrtc'] as const).some((protocol) =>
    isGuarded(vhost.config, { direction: 'outgoing', protocol }),
  );
}

/**
 * Lists the live streams of a virtual host that this node owns or relays, or one of them, in their public form.
 * @param serves publishers of the port
 */
export function listStreams(
  vhost: VirtualHost,
  serves: readonly PlayablePublisher[],
  only?: { app: string; stream: string },
): StreamList {
  const now = Date.now();
  if (hidesStreams(vhost)) return { now, restricted: true, streams: [], more: false };
  const streams: LiveStream[] = [];
  for (const [application, output] of only === undefined ? everyOutput(vhost) : oneOutput(vhost, only)) {
    if (streams.length === MAX_LISTED) return { now, restricted: false, streams, more: true };
    streams.push(describe(application, output, serves));
  }
  return { now, restricted: false, streams, more: false };
}

function* everyOutput(vhost: VirtualHost): IterableIterator<[Application, OutputStream]> {
  for (const application of vhost.applications.values()) {
    for (const output of [...application.outputs.values(), ...application.relays.values()]) {
      if (output.tracks.length > 0) yield [application, output];
    }
  }
}

function oneOutput(
  vhost: VirtualHost,
  { app, stream }: { app: string; stream: string },
): [Application, OutputStream][] {
  const application = vhost.applications.get(app);
  const output = application?.output(stream);
  return application === undefined || output === undefined || output.tracks.length === 0 ? [] : [[application, output]];
}

function describe(application: Application, output: OutputStream, serves: readonly PlayablePublisher[]): LiveStream {
  const { publishers } = application.config;
  const plays = (publisher: PlayablePublisher): boolean =>
    serves.includes(publisher) && publishers[publisher] !== undefined;
  const [video] = output.tracks.filter((track) => track.type === 'video').sort((a, b) => b.height - a.height);
  const audio = output.tracks.filter((track) => track.type === 'audio');
  const audioCodecs = new Set(audio.map(({ codec }) => codec));
  const rateOf = (track: Track | undefined): number => (track && output.measured(track.id)?.bitrateLatest) ?? 0;
  const webrtc = plays('webrtc') ? playlists(output, 'webrtc') : [];
  const subtitles = subtitlesOf(output, webrtc[0]);
  // of audio that is encoded only for who takes it there is none
  const bitrate = rateOf(video) + rateOf(audio.find((track) => rateOf(track) > 0));
  return {
    app: application.name,
    stream: output.name,
    since: output.createdTime.getTime(),
    ...(output.input.isRelay && { relayed: true as const }),
    viewers: output.sessions.size + output.viewersElsewhere,
    video: video && {
      codec: video.codec,
      width: video.width,
      height: video.height,
      framerate: video.framerate || Math.round(output.measured(video.id)?.framerateLatest ?? 0),
    },
    audio: audioCodecs.size > 0 ? { codecs: [...audioCodecs] } : undefined,
    ...(bitrate > 0 && { bitrate }),
    thumbnail: thumbnailOf(application, output),
    llhls: plays('llhls') ? playlists(output, 'llhls').map((name) => `${name}.m3u8`) : [],
    ...(plays('llhls') && publishers.llhls?.dvr?.enable === true && { rewinds: true as const }),
    webrtc,
    ...(subtitles.length > 0 && { subtitles }),
  };
}

/** @param fileName of a playlist; undefined for none, which has no subtitles */
function subtitlesOf(output: OutputStream, fileName: string | undefined): Static<typeof ShownSubtitles>[] {
  if (fileName === undefined || output.playlist(fileName)?.hidesSubtitles === true) return [];
  return output.tracks
    .filter((track) => track.type === 'subtitle')
    .map(({ publicName = '', language, isDefault, forced }) => ({
      label: publicName,
      ...(language !== undefined && { language }),
      ...(isDefault && { isDefault: true as const }),
      ...(forced && { forced: true as const }),
    }));
}

const THUMBNAIL_FILES = { JPEG: 'thumb.jpg', PNG: 'thumb.png', WEBP: 'thumb.webp', AVIF: 'thumb.avif' } as const;

function thumbnailOf({ vhost, config }: Application, output: OutputStream): string | undefined {
  if (config.publishers.thumbnail === undefined) return undefined;
  if (isGuarded(vhost.config, { direction: 'outgoing', protocol: 'thumbnail' })) return undefined;
  const image = output.tracks.find((track) => track.type === 'image');
  return image && THUMBNAIL_FILES[image.codec];
}

/** File names of the playlists that a publisher plays, its own default first. */
function playlists(output: OutputStream, publisher: PlayablePublisher): string[] {
  const own = DEFAULT_PLAYLISTS[publisher];
  const others: readonly string[] = Object.values(DEFAULT_PLAYLISTS).filter((name) => name !== own);
  return output.playlists
    .filter(({ name, fileName }) => fileName !== undefined && !others.includes(name ?? ''))
    .sort((a, b) => Number(b.name === own) - Number(a.name === own))
    .map(({ fileName }) => fileName as string);
}
