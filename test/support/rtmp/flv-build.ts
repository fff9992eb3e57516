import type { AudioCodec, VideoCodec } from '../../../src/core/track.ts';
import { AUDIO_FOUR_CC } from '../../../src/containers/flv/audio.ts';
import { FlvError } from '../../../src/containers/flv/error.ts';
import { AUDIO_MULTITRACK, Multitrack, PacketType, VIDEO_MULTITRACK } from '../../../src/containers/flv/extended.ts';
import { VIDEO_FOUR_CC } from '../../../src/containers/flv/video.ts';

export interface VideoTagOptions {
  readonly codec: VideoCodec;
  readonly packet: 'config' | 'frame' | 'end';
  readonly key: boolean;
  /** Milliseconds; H.264 and H.265 only. */
  readonly compositionTime?: number;
  readonly data: Buffer;
}

const LEGACY_PACKETS = { config: 0, frame: 1, end: 2 } as const;
const EXTENDED_PACKETS = {
  config: PacketType.SequenceStart,
  frame: PacketType.CodedFrames,
  end: PacketType.SequenceEnd,
} as const;
/** 44 kHz, 16 bits, stereo: what AAC says whatever it is. */
const LEGACY_AAC = 0xaf;
const EXTENDED_AUDIO = 0x90;
const EXTENDED_VIDEO = 0x80;

/** The body of a video tag: H.264 in the classic form, everything else in that of Enhanced RTMP. */
export function buildVideoTag({ codec, packet, key, compositionTime = 0, data }: VideoTagOptions): Buffer {
  const frameType = key ? 0x10 : 0x20;
  if (codec === 'H264') {
    const head = Buffer.of(frameType | 7, LEGACY_PACKETS[packet], 0, 0, 0);
    head.writeIntBE(compositionTime, 2, 3);
    return Buffer.concat([head, data]);
  }
  const head = [Buffer.of(EXTENDED_VIDEO | frameType | EXTENDED_PACKETS[packet]), fourCcOf(VIDEO_FOUR_CC, codec)];
  return Buffer.concat([...head, ...composition(codec, packet, compositionTime), data]);
}

/** Which codecs have it in the extended form. */
function composition(codec: VideoCodec | AudioCodec, packet: string, time: number): Buffer[] {
  if (packet !== 'frame' || (codec !== 'H264' && codec !== 'H265')) return [];
  const bytes = Buffer.alloc(3);
  bytes.writeIntBE(time, 0, 3);
  return [bytes];
}

export interface AudioTagOptions {
  readonly codec: AudioCodec;
  readonly packet: 'config' | 'frame' | 'end';
  readonly data: Buffer;
}

/** The body of an audio tag: AAC in the classic form, everything else in that of Enhanced RTMP. */
export function buildAudioTag({ codec, packet, data }: AudioTagOptions): Buffer {
  if (codec === 'AAC') return Buffer.concat([Buffer.of(LEGACY_AAC, packet === 'config' ? 0 : 1), data]);
  return Buffer.concat([Buffer.of(EXTENDED_AUDIO | EXTENDED_PACKETS[packet]), fourCcOf(AUDIO_FOUR_CC, codec), data]);
}

export interface TrackTagOptions<C> {
  readonly trackId: number;
  readonly codec: C;
  /** Milliseconds; H.264 and H.265 only. */
  readonly compositionTime?: number;
  readonly data: Buffer;
}

/** The body of a video tag of one track or of several, in the multitrack form of Enhanced RTMP v2. */
export function buildVideoTracks(
  packet: VideoTagOptions['packet'],
  key: boolean,
  tracks: readonly TrackTagOptions<VideoCodec>[],
): Buffer {
  return buildTracks(EXTENDED_VIDEO | (key ? 0x10 : 0x20) | VIDEO_MULTITRACK, VIDEO_FOUR_CC, packet, tracks);
}

/** The body of an audio tag of one track or of several, in the multitrack form of Enhanced RTMP v2. */
export function buildAudioTracks(
  packet: AudioTagOptions['packet'],
  tracks: readonly TrackTagOptions<AudioCodec>[],
): Buffer {
  return buildTracks(EXTENDED_AUDIO | AUDIO_MULTITRACK, AUDIO_FOUR_CC, packet, tracks);
}

function buildTracks(
  first: number,
  fourCcs: Readonly<Record<string, string>>,
  packet: 'config' | 'frame' | 'end',
  tracks: readonly TrackTagOptions<VideoCodec | AudioCodec>[],
): Buffer {
  const codecs = new Set(tracks.map(({ codec }) => codec));
  const many = codecs.size > 1 ? Multitrack.ManyTracksManyCodecs : Multitrack.ManyTracks;
  const kind = tracks.length === 1 ? Multitrack.OneTrack : many;
  const shared = [...codecs].slice(0, codecs.size === 1 ? 1 : 0).map((codec) => fourCcOf(fourCcs, codec));
  const parts = tracks.flatMap(({ trackId, codec, compositionTime = 0, data }) => {
    const body = [...composition(codec, packet, compositionTime), data];
    const size = Buffer.alloc(3);
    size.writeUIntBE(
      body.reduce((sum, { length }) => sum + length, 0),
      0,
      3,
    );
    return [
      ...(codecs.size > 1 ? [fourCcOf(fourCcs, codec)] : []),
      Buffer.of(trackId),
      ...(kind === Multitrack.OneTrack ? [] : [size]),
      ...body,
    ];
  });
  return Buffer.concat([Buffer.of(first, (kind << 4) | EXTENDED_PACKETS[packet]), ...shared, ...parts]);
}

function fourCcOf(table: Readonly<Record<string, string>>, codec: string): Buffer {
  const found = Object.entries(table).find(([, named]) => named === codec);
  if (found === undefined) throw new FlvError(`${codec} has no FourCC`);
  return Buffer.from(found[0], 'latin1');
}
