import { isSameShape, type Look } from '../codecs/vui.ts';
import type { Timebase } from './timebase.ts';

/** Codec names as the management API spells them. */
export type VideoCodec = 'H264' | 'H265' | 'AV1' | 'VP8' | 'VP9';
export type AudioCodec = 'AAC' | 'OPUS' | 'MP3' | 'MP2' | 'AC3' | 'EAC3' | 'FLAC' | 'PCMA' | 'PCMU' | 'G722';
export type ImageCodec = 'JPEG' | 'PNG' | 'WEBP' | 'AVIF';
/**
 * Kinds of events: ID3v2 tags, SCTE-35 sections (`splice_info_section`), CUE (UTF-8 JSON: `{ "cueType": "out" | "in",
 * "duration": milliseconds }`), INTERSTITIAL (UTF-8 JSON: core/interstitial.ts), AMF (an AMF0 data message: name and values),
 * KLV (whole items of SMPTE 336M).
 */
export type DataCodec = 'ID3v2' | 'SCTE35' | 'CUE' | 'INTERSTITIAL' | 'AMF' | 'KLV';
/** Timed text: settings and payload of a WebVTT cue (core/subtitle-cue.ts). */
export type SubtitleCodec = 'WebVTT';
export type Codec = VideoCodec | AudioCodec | ImageCodec | DataCodec | SubtitleCodec;

/** Encoder of a track of an output profile. It lives as long as the track does. */
export interface Encoder {
  /** Module of the codec inventory, such as `x264`. */
  readonly module: string;
  /** Undefined until it has put out something or failed to. */
  readonly status: 'Ready' | 'Failed' | undefined;
}

interface TrackBase {
  /** Unique within its stream. */
  readonly id: number;
  /** Variant name: the encode's name on an output track, the media type name on an input track. */
  readonly name: string;
  readonly timebase: Timebase;
  /** True on an output track whose packets are those of the input. */
  readonly bypass: boolean;
  /** Id of the input's track, on a bypassed output track. */
  readonly source?: number;
  /** Absent on a track that is not encoded here. */
  readonly encoder?: Encoder;
  readonly language?: string;
  readonly characteristics?: string;
  /** Name that players show; absent: that of its language. */
  readonly publicName?: string;
}

interface VisualTrack extends TrackBase {
  readonly width: number;
  readonly height: number;
  /** Declared by the source or the output profile; 0 if it was not. */
  readonly bitrate: number;
  readonly framerate: number;
  /** GOP size in frames set by the output profile, 0 otherwise. */
  readonly keyFrameInterval: number;
}

export interface VideoTrack extends VisualTrack, Look {
  readonly type: 'video';
  readonly codec: VideoCodec;
  /** avcC, hvcC, av1C or vpcC payload; absent for VP8. */
  readonly config?: Buffer;
  /**
   * Parameter sets of H.264 and H.265 that the configuration lacks come in packets, all that are active in front of key
   * frames. Once it is said it stays until the configuration changes; it makes no other format of the track.
   */
  readonly inBandSets?: true;
}

export interface AudioTrack extends TrackBase {
  readonly type: 'audio';
  readonly codec: AudioCodec;
  /** AudioSpecificConfig (AAC), dOps payload (Opus) or STREAMINFO (FLAC). */
  readonly config?: Buffer;
  readonly samplerate: number;
  readonly channels: number;
  /** Declared by the source or the output profile; 0 if it was not. */
  readonly bitrate: number;
}

/** Still images of a video, each packet a whole file. */
export interface ImageTrack extends VisualTrack {
  readonly type: 'image';
  readonly codec: ImageCodec;
}

/** Events, each packet one of them. */
export interface DataTrack extends TrackBase {
  readonly type: 'data';
  readonly codec: DataCodec;
  /** The only tracks that they belong beside; absent: all of the stream. */
  readonly target?: 'video' | 'audio';
}

/** Subtitles, each packet one cue, at the time and for the duration that it is shown. `publicName` is its label. */
export interface SubtitleTrack extends TrackBase {
  readonly type: 'subtitle';
  readonly codec: SubtitleCodec;
  /** Players choose it by language, without being asked. */
  readonly autoSelect: boolean;
  /** Players show it unless their user chose otherwise. */
  readonly isDefault: boolean;
  /** Essential, even to those who asked for no subtitles. */
  readonly forced: boolean;
}

/**
 * Format of a packet's bytes. Immutable: a change of configuration makes a new Track
 * with the same id, so a reader sees it as `packet.track !== known`.
 */
export type Track = VideoTrack | AudioTrack | ImageTrack | DataTrack | SubtitleTrack;
export type MediaTrack = VideoTrack | AudioTrack;

/** Whether a track is video or audio. */
export function isMedia(track: Track): track is MediaTrack {
  return track.type === 'video' || track.type === 'audio';
}

/** The size that a video is shown in, in square pixels and not rounded: as high as it is coded, and as wide as its samples make it. */
export function shownSize({ width, height, sar }: VideoTrack): { readonly width: number; readonly height: number } {
  return sar === undefined ? { width, height } : { width: (width * sar.num) / sar.den, height };
}

/** Whether an event of a data track belongs beside a track of audio or video. */
export function isBeside({ target }: DataTrack, type: Track['type']): boolean {
  return target === undefined || target === type;
}

/** The data tracks of a stream whose events belong beside some of its tracks. */
export function eventsBeside(chosen: readonly Track[], all: readonly Track[]): DataTrack[] {
  return all.filter(
    (track): track is DataTrack => track.type === 'data' && chosen.some(({ type }) => isBeside(track, type)),
  );
}

/** Whether what decodes one goes on with the other: they differ in no more than what is said of them. */
export function sameFormat(one: Track, other: Track): boolean {
  if (one.codec !== other.codec || one.timebase.num !== other.timebase.num || one.timebase.den !== other.timebase.den) {
    return false;
  }
  if ('width' in one && 'width' in other && (one.width !== other.width || one.height !== other.height)) return false;
  if (one.type === 'video' && other.type === 'video' && !isSameShape(one.sar, other.sar)) return false;
  if (one.type === 'audio' && other.type === 'audio') {
    if (one.samplerate !== other.samplerate || one.channels !== other.channels) return false;
  }
  const config = isMedia(one) ? one.config : undefined;
  const otherConfig = isMedia(other) ? other.config : undefined;
  return config === undefined || otherConfig === undefined ? config === otherConfig : config.equals(otherConfig);
}

/** Whether the packets of both have parameter sets that the configuration lacks, or neither's. */
export function sameSets(one: Track, other: Track): boolean {
  const [inBand, otherInBand] = [one, other].map((track) => track.type === 'video' && track.inBandSets === true);
  return inBand === otherInBand;
}
