import type { VideoTrack } from '../core/track.ts';
import type { Choice, ChosenJob } from './module-choice.ts';
import { imageForm } from './encoders/image.ts';
import type { AudioEncoding, ImageEncoding, VideoEncoding } from './encoding.ts';
import { frameFilters, leaveOut, resumeFilter } from './frame-grid.ts';
import { overlayFilters } from './overlay-filter.ts';
import { toneFilters } from './tone-filter.ts';

/** Options of the filter `scale`, which by default converts full range to limited range. */
const FULL_RANGE = ':in_range=pc:out_range=pc';

type Time = ChosenJob['resumeAt'];

/** The filters between a decoder and the encoder of a job, as the value of ffmpeg's option `filter`. */
export function filterChain({ job: { from, encoding }, choice, resumeAt, mapsTones = false }: ChosenJob): string {
  if (encoding.type === 'audio') return audioChain(encoding, resumeAt);
  if (from.type === 'audio') throw new Error('No image can be made of an audio track');
  const tones = mapsTones ? toneFilters(from.colour) : [];
  if (encoding.type === 'image') return imageChain(from, encoding, choice, tones, resumeAt);
  return videoChain(from, encoding, choice, tones, resumeAt);
}

type Tones = readonly string[];

function videoChain(from: VideoTrack, encoding: VideoEncoding, choice: Choice, tones: Tones, resumeAt: Time): string {
  const { width, height, overlays = [] } = encoding;
  const resume = encoding.keyFrames === 'source' ? leaveOut('trim', resumeAt) : resumeFilter(resumeAt);
  const range = tones.length === 0 && from.colour?.fullRange && signalsRange(encoding) ? FULL_RANGE : '';
  const scaled = [...frameFilters(from, encoding), ...resume, `scale=${width}:${height}${range}`, ...tones].join(',');
  return `${overlayFilters(scaled, overlays, 'o')},${choice.device?.filter ?? 'format=yuv420p'}`;
}

function imageChain(from: VideoTrack, encoding: ImageEncoding, choice: Choice, tones: Tones, resumeAt: Time): string {
  const { colours, format } = imageForm(choice.ffmpegName);
  const size = `scale=${encoding.width}:${encoding.height}`;
  // scales first, to map the tones of fewer pixels; the colours of the file apply after that
  const mapped = tones.length === 0 ? [] : [size, ...tones];
  const chosen = [...frameFilters(from, encoding), ...leaveOut('trim', resumeAt)];
  return [...chosen, ...mapped, `${size}${colours}`, `format=${format}`].join(',');
}

function audioChain({ samplerate, channels }: AudioEncoding, resumeAt: Time): string {
  const layout = channels === 1 ? 'mono' : 'stereo';
  return [...leaveOut('atrim', resumeAt), `aformat=sample_rates=${samplerate}:channel_layouts=${layout}`].join(',');
}

/** Whether a codec can signal full range; VP8 cannot. */
function signalsRange({ codec }: VideoEncoding): boolean {
  return codec !== 'VP8';
}
