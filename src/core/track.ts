import type { Timebase } from './timebase.ts';

/** Codec names as the management API spells them. */
export type VideoCodec = 'H264' | 'H265' | 'AV1' | 'VP8' | 'VP9';
export type AudioCodec = 'AAC' | 'OPUS' | 'MP3' | 'MP2';
export type DataCodec = 'ID3v2';
export type Codec = VideoCodec | AudioCodec | DataCodec;

interface TrackBase {
  /** Unique within its stream. */
  readonly id: number;
  /** Variant name: the encode's name on an output track, the media type name on an input track. */
  readonly name: string;
  readonly timebase: Timebase;
  /** True on an output track whose packets are those of the input. */
  readonly bypass: boolean;
  readonly language?: string;
  readonly characteristics?: string;
}

export interface VideoTrack extends TrackBase {
  readonly type: 'video';
  readonly codec: VideoCodec;
  /** avcC, hvcC, av1C or vpcC payload; absent for VP8. */
  readonly config?: Buffer;
  readonly width: number;
  readonly height: number;
  /** What the source or the output profile declared, 0 when nothing was. */
  readonly bitrate: number;
  readonly framerate: number;
  /** GOP size set by the output profile, 0 otherwise. */
  readonly keyFrameInterval: number;
}

export interface AudioTrack extends TrackBase {
  readonly type: 'audio';
  readonly codec: AudioCodec;
  /** AudioSpecificConfig (AAC) or dOps payload (Opus). */
  readonly config?: Buffer;
  readonly samplerate: number;
  readonly channels: number;
  /** What the source or the output profile declared, 0 when nothing was. */
  readonly bitrate: number;
}

export interface DataTrack extends TrackBase {
  readonly type: 'data';
  readonly codec: DataCodec;
}

/**
 * What a packet's bytes are. Immutable: a change of configuration makes a new Track
 * with the same id, so a reader sees it as `packet.track !== known`.
 */
export type Track = VideoTrack | AudioTrack | DataTrack;
export type MediaTrack = VideoTrack | AudioTrack;
