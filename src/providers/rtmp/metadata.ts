import { isAmfObject, type AmfObject, type AmfValue } from '../../protocols/rtmp/amf-value.ts';
import { UNDECLARED, type DeclaredTrack } from '../intake/declared.ts';
import type { Announced } from '../intake/start-gate.ts';
import { MAX_TRACKS } from '../intake/track-id.ts';

/** Properties that a source declares in `onMetaData`. */
export interface Declared {
  /** Announced track ids of Enhanced RTMP; undefined when the source announces none. */
  readonly announced: Announced | undefined;
  /** By track id of Enhanced RTMP. */
  readonly video: ReadonlyMap<number, DeclaredTrack>;
  readonly audio: ReadonlyMap<number, DeclaredTrack>;
}

export const NOTHING_DECLARED: Declared = Object.freeze({ announced: undefined, video: new Map(), audio: new Map() });

/** Largest track id of Enhanced RTMP. */
const MAX_TRACK_ID = 255;
const TRACK_ID = /^(0|[1-9]\d{0,2})$/;
/** A language tag (RFC 5646), or a code of ISO 639. */
const LANGUAGE = /^[a-z]{2,8}(-[a-z0-9]{1,8})*$/i;
const MAX_LANGUAGE = 35;

/**
 * Reads the values of a data message; undefined when it is not stream metadata.
 * Encoders send `@setDataFrame`, `onMetaData`, {...}, or leave the first out. Properties of the object itself are
 * those of track 0; `videoTrackIdInfoMap` and `audioTrackIdInfoMap` hold what differs in others (Enhanced RTMP v2,
 * "Enhancing onMetaData"). No property is specified for a language: `language`, which ffmpeg writes of a whole
 * file, and `lang` are taken.
 */
export function readMetadata(values: readonly AmfValue[]): Declared | undefined {
  const at = values[0] === '@setDataFrame' ? 1 : 0;
  const properties = values[at + 1];
  if (values[at] !== 'onMetaData' || properties === undefined || !isAmfObject(properties)) return undefined;
  const videos = trackInfo(properties.videoTrackIdInfoMap);
  const audios = trackInfo(properties.audioTrackIdInfoMap);
  const video = isPresent(properties.videocodecid);
  const audio = isPresent(properties.audiocodecid);
  const announce = (main: boolean, info: TrackInfo) => [...new Set([...(main ? [0] : []), ...info.keys()])];
  return {
    announced: video || audio ? { video: announce(video, videos), audio: announce(audio, audios) } : undefined,
    video: declaredTracks(properties, videos, readVideo),
    audio: declaredTracks(properties, audios, readAudio),
  };
}

type TrackInfo = ReadonlyMap<number, AmfObject>;

function trackInfo(value: AmfValue): TrackInfo {
  const info = new Map<number, AmfObject>();
  if (!isAmfObject(value)) return info;
  for (const [key, properties] of Object.entries(value)) {
    if (info.size === MAX_TRACKS) break;
    if (TRACK_ID.test(key) && Number(key) <= MAX_TRACK_ID && isAmfObject(properties)) info.set(Number(key), properties);
  }
  return info;
}

function declaredTracks(
  main: AmfObject,
  info: TrackInfo,
  read: (properties: AmfObject) => DeclaredTrack,
): Map<number, DeclaredTrack> {
  const tracks = new Map([[0, read({ ...main, ...info.get(0) })]]);
  // A track deviates from the main one, but not all of them speak its language.
  const common = { ...main, language: undefined, lang: undefined };
  for (const [trackId, own] of info) if (trackId !== 0) tracks.set(trackId, read({ ...common, ...own }));
  return tracks;
}

function readVideo(properties: AmfObject): DeclaredTrack {
  const { width, height, framerate, videoframerate, fps, videodatarate } = properties;
  return {
    width: Math.round(number(width, 65_535)),
    height: Math.round(number(height, 65_535)),
    framerate: number(framerate, 1000) || number(videoframerate, 1000) || number(fps, 1000),
    bitrate: Math.round(number(videodatarate, 10_000_000) * 1000),
    language: undefined,
  };
}

function readAudio({ audiodatarate, language, lang }: AmfObject): DeclaredTrack {
  const bitrate = Math.round(number(audiodatarate, 100_000) * 1000);
  return { ...UNDECLARED, bitrate, language: readLanguage(language) ?? readLanguage(lang) };
}

function readLanguage(value: AmfValue): string | undefined {
  return typeof value === 'string' && value.length <= MAX_LANGUAGE && LANGUAGE.test(value) ? value : undefined;
}

function number(value: AmfValue, most: number): number {
  const found = Number(value);
  return found > 0 && found <= most ? found : 0;
}

function isPresent(value: AmfValue): boolean {
  return value !== undefined && value !== null && value !== 0 && value !== '';
}
