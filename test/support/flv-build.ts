import type { AudioCodec, VideoCodec } from '../../src/core/track.ts';
import { AUDIO_FOUR_CC } from '../../src/containers/flv/audio.ts';
import { FlvError } from '../../src/containers/flv/error.ts';
import { PacketType } from '../../src/containers/flv/extended.ts';
import { VIDEO_FOUR_CC } from '../../src/containers/flv/video.ts';

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
  config: PacketType.SequenceStart, frame: PacketType.CodedFrames, end: PacketType.SequenceEnd,
} as const;
/** 44 kHz, 16 bits, stereo: what AAC says whatever it is. */
const LEGACY_AAC = 0xaf;
const EXTENDED_AUDIO = 0x90;

/** The body of a video tag: H.264 in the classic form, everything else in that of Enhanced RTMP. */
export function buildVideoTag({ codec, packet, key, compositionTime = 0, data }: VideoTagOptions): Buffer {
  const frameType = key ? 0x10 : 0x20;
  if (codec === 'H264') {
    const head = Buffer.of(frameType | 7, LEGACY_PACKETS[packet], 0, 0, 0);
    head.writeIntBE(compositionTime, 2, 3);
    return Buffer.concat([head, data]);
  }
  const head = [Buffer.of(0x80 | frameType | EXTENDED_PACKETS[packet]), fourCcOf(VIDEO_FOUR_CC, codec)];
  if (codec === 'H265' && packet === 'frame') {
    const composition = Buffer.alloc(3);
    composition.writeIntBE(compositionTime, 0, 3);
    head.push(composition);
  }
  return Buffer.concat([...head, data]);
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

function fourCcOf(table: Readonly<Record<string, string>>, codec: string): Buffer {
  const found = Object.entries(table).find(([, named]) => named === codec);
  if (found === undefined) throw new FlvError(`${codec} has no FourCC`);
  return Buffer.from(found[0], 'latin1');
}
