import * as aac from '../codecs/aac.ts';
import * as av1 from '../codecs/av1.ts';
import * as h264 from '../codecs/h264.ts';
import * as h265 from '../codecs/h265.ts';
import * as vp9 from '../codecs/vp9.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../core/track.ts';

type Coded = Pick<MediaTrack, 'type' | 'codec' | 'config'> & { readonly inBandSets?: true };

/**
 * CODECS string of a track (RFC 6381).
 * @throws UnsupportedTrackError, BitstreamError
 */
export function codecString(track: Coded): string {
  const { codec, config } = track;
  const isOpen = track.type === 'video' && track.inBandSets === true;
  if (codec === 'OPUS') return 'opus';
  if (codec === 'FLAC') return 'fLaC';
  if (config === undefined) throw new UnsupportedTrackError(`${codec} track without configuration`);
  switch (codec) {
    case 'H264':
      return h264.codecString(h264.parseAvcConfig(config), isOpen ? 'avc3' : 'avc1');
    case 'H265':
      return h265.codecString(h265.parseHevcConfig(config), isOpen ? 'hev1' : 'hvc1');
    case 'AV1':
      return av1.codecString(av1.parseAv1Config(config));
    case 'VP9':
      return vp9.codecString(vp9.parseVpcConfig(config));
    case 'AAC':
      return aac.codecString(aac.parseAudioSpecificConfig(config));
    default:
      throw new UnsupportedTrackError(`${codec} cannot be carried in fragmented MP4`);
  }
}
