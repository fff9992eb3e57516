import type { AudioCodec, VideoCodec } from '../../core/track.ts';
import { AUDIO_FOUR_CC } from './audio.ts';
import { FlvError } from './error.ts';
import { AUDIO_MULTITRACK, Multitrack, PacketType, VIDEO_MULTITRACK } from './extended.ts';
import { VIDEO_FOUR_CC } from './video.ts';

/** Content of a tag: the configuration of its codec, or a frame. */
export type TagContent = 'config' | 'frame';

const LEGACY_AVC = 7;
/** Value for AAC of any format: 44 kHz, 16 bits, stereo. */
const LEGACY_AAC = 0xaf;
/** Value for MP3, whose frames have their format. */
const LEGACY_MP3 = 0x2f;
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
 * @param trackId other than 0 for a further track (Enhanced RTMP v2, "Multitrack")
 * @throws FlvError for a codec without a FourCC
 */
export function videoTagHead(
  codec: VideoCodec,
  content: TagContent,
  key: boolean,
  compositionTime: number,
  trackId = 0,
): Buffer {
  const frame = key ? KEY_FRAME : INTER_FRAME;
  const isFrame = content === 'frame';
  if (trackId !== 0) {
    const head = multitrackHead(EXTENDED_VIDEO | frame | VIDEO_MULTITRACK, codec, content, trackId);
    if (!isFrame || (codec !== 'H264' && codec !== 'H265')) return head;
    const composition = Buffer.alloc(3);
    composition.writeIntBE(compositionTime, 0, 3);
    return Buffer.concat([head, composition]);
  }
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
 * Builds the head of an audio tag's body: AAC and MP3 in the classic form (annex E.4.2), everything else in that of Enhanced RTMP.
 * @param trackId other than 0 for a further track
 * @throws FlvError for a codec without a FourCC
 */
export function audioTagHead(codec: AudioCodec, content: TagContent, trackId = 0): Buffer {
  if (trackId !== 0) return multitrackHead(EXTENDED_AUDIO | AUDIO_MULTITRACK, codec, content, trackId);
  if (codec === 'MP3') return Buffer.of(LEGACY_MP3);
  if (codec === 'AAC') return Buffer.of(LEGACY_AAC, content === 'frame' ? 1 : 0);
  return extendedHead(EXTENDED_AUDIO, codec, content, 0);
}

const FOUR_CCS: ReadonlyMap<string, string> = new Map(
  [...Object.entries(VIDEO_FOUR_CC), ...Object.entries(AUDIO_FOUR_CC)].map(([fourCc, codec]) => [codec, fourCc]),
);

/** @param more bytes that follow the FourCC */
function extendedHead(first: number, codec: VideoCodec | AudioCodec, content: TagContent, more: number): Buffer {
  const head = Buffer.alloc(5 + more);
  head[0] = first | packetType(content);
  head.write(demandFourCc(codec), 1, 'latin1');
  return head;
}

function multitrackHead(first: number, codec: VideoCodec | AudioCodec, content: TagContent, trackId: number): Buffer {
  const head = Buffer.alloc(7);
  head[0] = first;
  head[1] = (Multitrack.OneTrack << 4) | packetType(content);
  head.write(demandFourCc(codec), 2, 'latin1');
  head[6] = trackId;
  return head;
}

function packetType(content: TagContent): number {
  return content === 'frame' ? PacketType.CodedFrames : PacketType.SequenceStart;
}

function demandFourCc(codec: VideoCodec | AudioCodec): string {
  const fourCc = fourCcOf(codec);
  if (fourCc === undefined) throw new FlvError(`${codec} has no FourCC`);
  return fourCc;
}
