import type { VideoTrack } from '../core/track.ts';
import type { Choice, ChosenJob } from './choice.ts';
import { imageForm } from './encoders/image.ts';
import type { AudioEncoding, ImageEncoding, VideoEncoding } from './encoding.ts';
import { frameFilters, leaveOut, resumeFilter } from './frame-grid.ts';
import { overlayFilters } from './overlay-filter.ts';

type Time = ChosenJob['resumeAt'];

/** The filters between a decoder and the encoder of a job, as the value of ffmpeg's option `filter`. */
export function filterChain({ job: { from, encoding }, choice, resumeAt }: ChosenJob): string {
  if (encoding.type === 'audio') return soundChain(encoding, resumeAt);
  if (from.type === 'audio') throw new Error('No image can be made of an audio track');
  if (encoding.type === 'image') return imageChain(from, encoding, choice, resumeAt);
  return videoChain(from, encoding, choice, resumeAt);
}

function videoChain(from: VideoTrack, encoding: VideoEncoding, choice: Choice, resumeAt: Time): string {
  const { width, height, overlays = [] } = encoding;
  const resume = encoding.keyFrames === 'source' ? leaveOut('trim', resumeAt) : resumeFilter(resumeAt);
  const scaled = [...frameFilters(from, encoding), ...resume, `scale=${width}:${height}`].join(',');
  return `${overlayFilters(scaled, overlays, 'o')},${choice.device?.filter ?? 'format=yuv420p'}`;
}

function imageChain(from: VideoTrack, encoding: ImageEncoding, choice: Choice, resumeAt: Time): string {
  const { colours, format } = imageForm(choice.ffmpegName);
  const scale = `scale=${encoding.width}:${encoding.height}${colours}`;
  return [...frameFilters(from, encoding), ...leaveOut('trim', resumeAt), scale, `format=${format}`].join(',');
}

function soundChain({ samplerate, channels }: AudioEncoding, resumeAt: Time): string {
  const layout = channels === 1 ? 'mono' : 'stereo';
  return [...leaveOut('atrim', resumeAt), `aformat=sample_rates=${samplerate}:channel_layouts=${layout}`].join(',');
}
