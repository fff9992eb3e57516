import { buildOpusHead, parseOpusConfig } from '../codecs/opus.ts';
import { audioTagHead, fourCcOf, videoTagHead } from '../containers/flv/tag-head.ts';
import { isMedia, type AudioCodec, type MediaTrack, type Track, type VideoCodec } from '../core/track.ts';
import type { AmfObject, AmfValue } from '../protocols/rtmp/amf-value.ts';

const ENHANCED_VIDEO = ['H265', 'AV1', 'VP9'] as const satisfies readonly VideoCodec[];
const ENHANCED_AUDIO = ['OPUS'] as const satisfies readonly AudioCodec[];
const CLASSIC: ReadonlySet<string> = new Set(['H264', 'AAC']);
const ENHANCED: ReadonlySet<string> = new Set([...ENHANCED_VIDEO, ...ENHANCED_AUDIO]);
/** Codec ids of onMetaData. */
const AVC_ID = 7;
const AAC_ID = 10;

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
  return track.config === undefined ? `the configuration of its ${codec} is not known` : undefined;
}

/** Body of the tag that starts a track, in pieces. @throws BitstreamError when its configuration is malformed */
export function configTag(track: MediaTrack): Buffer[] {
  const config = track.config ?? Buffer.alloc(0);
  if (track.type === 'video') return [videoTagHead(track.codec, 'config', true, 0), config];
  const data = track.codec === 'OPUS' ? buildOpusHead(parseOpusConfig(config)) : config;
  return [audioTagHead(track.codec, 'config'), data];
}

/** Properties of onMetaData, as encoders send them. */
export function metadataOf(tracks: readonly Track[]): AmfObject {
  const properties: Record<string, AmfValue> = { duration: 0, encoder: 'Kiln' };
  for (const track of tracks) {
    if (track.type === 'video') {
      properties.width = track.width;
      properties.height = track.height;
      properties.framerate = track.framerate;
      properties.videodatarate = track.bitrate / 1000;
      properties.videocodecid = track.codec === 'H264' ? AVC_ID : fourCcNumber(track);
    } else if (track.type === 'audio') {
      properties.audiosamplerate = track.samplerate;
      properties.audiosamplesize = 16;
      properties.stereo = track.channels > 1;
      properties.audiodatarate = track.bitrate / 1000;
      properties.audiocodecid = track.codec === 'AAC' ? AAC_ID : fourCcNumber(track);
    }
  }
  return properties;
}

/** FourCC as a number, for onMetaData. */
function fourCcNumber({ codec }: MediaTrack): number {
  return Buffer.from(fourCcOf(codec) ?? '\0\0\0\0', 'latin1').readUInt32BE();
}
