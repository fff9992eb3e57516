import type { AudioCodec, VideoCodec } from '../../core/track.ts';
import { AUDIO_FOUR_CC } from './audio.ts';
import { FlvError } from './error.ts';
import { PacketType } from './extended.ts';
import { VIDEO_FOUR_CC } from './video.ts';

/** Content of a tag: the configuration of its codec, or a frame. */
export type TagContent = 'config' | 'frame';

const LEGACY_AVC = 7;
/** Value for AAC of any format: 44 kHz, 16 bits, stereo. */
const LEGACY_AAC = 0xaf;
const EXTENDED_VIDEO = 0x80;
const EXTENDED_AUDIO = 0x90;
const KEY_FRAME = 0x10;
const INTER_FRAME = 0x20;

/** FourCC of a codec in Enhanced RTMP; undefined if it has none. */
export function fourCcOf(codec: VideoCodec | AudioCodec): string | undefined {
  return FOUR_CCS.get(codec);
}

/**
 * Builds the head of a video tag's body, before the data: H.264 in the classic form (FLV specification annex E.4.3),
 * everything else in that of Enhanced RTMP.
 * @param compositionTime milliseconds; only H.264 and H.265 have it
 * @throws FlvError for a codec without a FourCC
 */
export function videoTagHead(codec: VideoCodec, content: TagContent, key: boolean, compositionTime: number): Buffer {
  const frame = key ? KEY_FRAME : INTER_FRAME;
  const isFrame = content === 'frame';
  if (codec === 'H264') {
    const head = Buffer.of(frame | LEGACY_AVC, isFrame ? 1 : 0, 0, 0, 0);
    head.writeIntBE(compositionTime, 2, 3);
    return head;
  }
  const hasComposition = codec === 'H265' && isFrame;
  const head = extendedHead(EXTENDED_VIDEO | frame, codec, content, hasComposition ? 3 : 0);
  if (hasComposition) head.writeIntBE(compositionTime, 5, 3);
  return head;
}

/**
 * Builds the head of an audio tag's body: AAC in the classic form (annex E.4.2), everything else in that of Enhanced RTMP.
 * @throws FlvError for a codec without a FourCC
 */
export function audioTagHead(codec: AudioCodec, content: TagContent): Buffer {
  if (codec === 'AAC') return Buffer.of(LEGACY_AAC, content === 'frame' ? 1 : 0);
  return extendedHead(EXTENDED_AUDIO, codec, content, 0);
}

const FOUR_CCS: ReadonlyMap<string, string> = new Map(
  [...Object.entries(VIDEO_FOUR_CC), ...Object.entries(AUDIO_FOUR_CC)].map(([fourCc, codec]) => [codec, fourCc]),
);

/** @param more bytes that follow the FourCC */
function extendedHead(first: number, codec: VideoCodec | AudioCodec, content: TagContent, more: number): Buffer {
  const fourCc = fourCcOf(codec);
  if (fourCc === undefined) throw new FlvError(`${codec} has no FourCC`);
  const head = Buffer.alloc(5 + more);
  head[0] = first | (content === 'frame' ? PacketType.CodedFrames : PacketType.SequenceStart);
  head.write(fourCc, 1, 'latin1');
  return head;
}
