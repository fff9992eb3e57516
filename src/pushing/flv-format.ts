import { fourCcOf } from '../containers/flv/tag-head.ts';
import { isMedia, type AudioCodec, type Track, type VideoCodec } from '../core/track.ts';

const ENHANCED_VIDEO = ['H265', 'AV1', 'VP9'] as const satisfies readonly VideoCodec[];
const ENHANCED_AUDIO = ['OPUS', 'FLAC', 'AC3', 'EAC3'] as const satisfies readonly AudioCodec[];
const CLASSIC: ReadonlySet<string> = new Set(['H264', 'AAC']);
const ENHANCED: ReadonlySet<string> = new Set([...ENHANCED_VIDEO, ...ENHANCED_AUDIO]);

/** Codecs whose frames have their configuration. */
const SELF_DESCRIBED: ReadonlySet<string> = new Set<AudioCodec>(['AC3', 'EAC3']);

/** FourCCs of codecs that Enhanced RTMP can carry. */
export const FOUR_CCS = {
  video: ENHANCED_VIDEO.flatMap((codec) => fourCcOf(codec) ?? []),
  audio: ENHANCED_AUDIO.flatMap((codec) => fourCcOf(codec) ?? []),
};

/**
 * Reason why RTMP cannot carry a track to a server. @param takes whether the server accepts a FourCC of Enhanced RTMP
 */
export function flvObjection(track: Track, takes: (fourCc: string) => boolean): string | undefined {
  const { codec } = track;
  if (codec === 'AMF') return undefined;
  if (!isMedia(track) || !(CLASSIC.has(codec) || ENHANCED.has(codec))) return `RTMP does not carry ${codec}`;
  const fourCc = fourCcOf(track.codec);
  if (ENHANCED.has(codec) && !(fourCc !== undefined && takes(fourCc)))
    return `the server does not take ${codec} by Enhanced RTMP`;
  return track.config === undefined && !SELF_DESCRIBED.has(codec)
    ? `the configuration of its ${codec} is not known`
    : undefined;
}
