import { buildOpusHead, parseOpusConfig } from '../codecs/opus.ts';
import type { NutStream } from '../containers/nut/format.ts';
import type { AudioCodec, AudioTrack, MediaTrack, VideoCodec } from '../core/track.ts';
import { sourceFramerate } from './frame-parameters.ts';
import { reorderedFrames } from '../core/reordering.ts';

/** Codec tags that ffmpeg knows in NUT: those of AVI and WAV, and a few of its own. */
const TAGS: Record<VideoCodec | AudioCodec, string> = {
  H264: 'H264',
  H265: 'HEVC',
  AV1: 'AV01',
  VP8: 'VP80',
  VP9: 'VP90',
  AAC: '\xff\0\0\0',
  OPUS: 'Opus',
  MP3: 'U\0\0\0',
  MP2: 'P\0\0\0',
  AC3: '\0 \0\0',
  EAC3: '\0 \0\0',
  FLAC: '\xac\xf1\0\0',
  PCMA: '\x06\0\0\0',
  PCMU: '\x07\0\0\0',
  G722: '\x8f\x02\0\0',
};
const NONE = Buffer.alloc(0);

/**
 * Describes a track to ffmpeg, so that its packets are decoded unchanged.
 * @throws BitstreamError when the track's configuration is malformed
 */
export function nutStreamOf(track: MediaTrack): NutStream {
  const { codec, config, timebase } = track;
  const common = { codecTag: TAGS[codec], timebase };
  if (track.type === 'audio') {
    const { samplerate, channels } = track;
    return { kind: 'audio', ...common, extradata: audioExtradata(track), decodeDelay: 0, samplerate, channels };
  }
  const { width, height } = track;
  // a decoder of VP9 has no use for vpcC
  const extradata = track.codec === 'VP9' ? NONE : (config ?? NONE);
  // if unknown, the decoder waits for reordered frames only after the first one
  const decodeDelay = reorderedFrames(track.codec, config) ?? 0;
  return { kind: 'video', ...common, extradata, decodeDelay, width, height, framerate: sourceFramerate(track, 0) };
}

function audioExtradata({ codec, config }: AudioTrack): Buffer {
  if (config === undefined) return NONE;
  return codec === 'OPUS' ? buildOpusHead(parseOpusConfig(config)) : config;
}
