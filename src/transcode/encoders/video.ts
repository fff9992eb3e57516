import type { VideoTrack } from '../../core/track.ts';
import type { Choice } from '../module-choice.ts';
import type { VideoEncoding } from '../encoding.ts';
import { readExtraOptions, type ExtraOptions } from './extra-options.ts';
import { openh264, x264, x265 } from './h26x.ts';
import { hardwareVideo } from './hardware-video.ts';
import { libaom, libvpx, svtav1 } from './open-video.ts';

const SOFTWARE: Readonly<Record<string, (encoding: VideoEncoding, extra: ExtraOptions, from: VideoTrack) => string[]>> =
  {
    libx264: x264,
    libx265: x265,
    libopenh264: openh264,
    libvpx: libvpx,
    'libvpx-vp9': libvpx,
    'libaom-av1': libaom,
    libsvtav1: svtav1,
  };

/** Options of a video encoder: its name, speed and bitrate, and low delay. */
export function videoOptions(encoding: VideoEncoding, from: VideoTrack, { ffmpegName, device }: Choice): string[] {
  const extra = readExtraOptions(encoding.extraOptions, ffmpegName);
  if (device !== undefined) return hardwareVideo(encoding, extra, from, ffmpegName, device);
  const options = Object.hasOwn(SOFTWARE, ffmpegName) ? SOFTWARE[ffmpegName] : undefined;
  if (options === undefined) throw new Error(`No options are known for the encoder ${ffmpegName}`);
  return options(encoding, extra, from);
}
