import type { MediaTrack, VideoTrack } from '../core/track.ts';
import type { ChosenJob } from './choice.ts';
import { imageForm } from './encoders/image.ts';
import type { AudioEncoding, ImageEncoding, VideoEncoding } from './encoding.ts';
import { frameFilters, leaveOut, resumeFilter } from './frame-grid.ts';
import { overlayFilters } from './overlay-filter.ts';

/** A job with the number of its output. */
export interface NumberedJob extends ChosenJob {
  readonly index: number;
}

/**
 * The filter graph of one input track: its frames are split among its jobs, each of which ends in the pad `o<index>`.
 * @param stream number of the track's NUT stream
 */
export function filterGraph(track: MediaTrack, stream: number, jobs: readonly NumberedJob[]): string {
  const source = `[0:${stream}]`;
  const chains = jobs.map((job) => `${chain(track, job)}[o${job.index}]`);
  if (chains.length === 1) return `${source}${chains.join('')}`;
  const heads = jobs.map(({ index }) => `[i${index}]`);
  const split = `${source}${track.type === 'audio' ? 'asplit' : 'split'}=${jobs.length}${heads.join('')}`;
  return [split, ...chains.map((own, place) => `${heads[place]}${own}`)].join(';');
}

function chain(track: MediaTrack, job: NumberedJob): string {
  const { encoding } = job.job;
  if (encoding.type === 'audio') return soundChain(encoding, job);
  if (track.type === 'audio') throw new Error('No picture can be made of an audio track');
  return encoding.type === 'image' ? imageChain(track, encoding, job) : videoChain(track, encoding, job);
}

function videoChain(track: VideoTrack, encoding: VideoEncoding, { choice, resumeAt, index }: NumberedJob): string {
  const { width, height, overlays = [] } = encoding;
  const resume = encoding.keyFrames === 'source' ? leaveOut('trim', resumeAt) : resumeFilter(resumeAt);
  const scaled = [...frameFilters(track, encoding), ...resume, `scale=${width}:${height}`].join(',');
  return `${overlayFilters(scaled, overlays, `p${index}`)},${choice.device?.filter ?? 'format=yuv420p'}`;
}

function imageChain(track: VideoTrack, encoding: ImageEncoding, { choice, resumeAt }: NumberedJob): string {
  const { colours, format } = imageForm(choice.ffmpegName);
  const scale = `scale=${encoding.width}:${encoding.height}${colours}`;
  return [...frameFilters(track, encoding), ...leaveOut('trim', resumeAt), scale, `format=${format}`].join(',');
}

function soundChain({ samplerate, channels }: AudioEncoding, { resumeAt }: NumberedJob): string {
  const layout = channels === 1 ? 'mono' : 'stereo';
  return [...leaveOut('atrim', resumeAt), `aformat=sample_rates=${samplerate}:channel_layouts=${layout}`].join(',');
}
