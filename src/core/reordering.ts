import * as h264 from '../codecs/h264.ts';
import * as h265 from '../codecs/h265.ts';
import type { VideoCodec } from './track.ts';

/**
 * Number of frames that can precede another in decoding and follow it in output, from the decoder configuration.
 * @returns undefined when the configuration does not say
 * @throws BitstreamError when the configuration is malformed
 */
export function reorderedFrames(codec: VideoCodec, config: Buffer | undefined): number | undefined {
  if (codec === 'H264') {
    const sps = config && h264.parseAvcConfig(config).sps[0];
    return sps && h264.parseSps(sps).maxReorderFrames;
  }
  if (codec === 'H265') {
    const sps = config && h265.parseHevcConfig(config).sps[0];
    return sps && h265.parseSps(sps).maxReorderFrames;
  }
  return 0;
}
