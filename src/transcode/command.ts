import type { MediaTrack } from '../core/track.ts';
import { FIRST_OUTPUT } from '../media-child/child.ts';
import type { Choice, ChosenJob } from './module-choice.ts';
import { audioOptions } from './encoders/audio.ts';
import { imageForm } from './encoders/image.ts';
import { videoOptions } from './encoders/video.ts';
import { filterChain } from './filters.ts';
import { forcedKeyFrames } from './frame-grid.ts';

/** Work of one ffmpeg. */
export interface Command {
  /** Input tracks in the order of the NUT streams, with the input of every job; jobs find theirs by id. */
  readonly tracks: readonly MediaTrack[];
  /** Decoder of each track, in the same order. */
  readonly decoders: readonly Choice[];
  /** Job i is written to `pipe:${FIRST_OUTPUT + i}`. */
  readonly jobs: readonly ChosenJob[];
  readonly decodes: { readonly threadCount: number; readonly onlyKeyframes: boolean };
}

const QUIET = ['-hide_banner', '-nostdin', '-loglevel', 'error'];
/** The first packet is enough: the NUT headers have what decoders need. */
const NO_PROBING = ['-probesize', '32', '-analyzeduration', '0'];

/**
 * Arguments of an ffmpeg that reads NUT on its standard input, decodes each track once, and writes every job as a
 * separate NUT with one stream. Times are the input's plus OFFSET_SECONDS, on both sides.
 * Every output has its own filter graph: in a common one, ffmpeg 7 passes no frame on until the output with the lowest
 * frame rate has one, and a silent track would block the others.
 */
export function ffmpegArguments(command: Command): string[] {
  const { tracks, jobs } = command;
  const upload = jobs.find(({ choice }) => uploads(choice))?.choice.device;
  return [
    ...QUIET,
    '-filter_threads',
    '1',
    ...(upload?.encodeWith ?? []),
    ...tracks.flatMap((track, stream) => decoderOptions(command, track, stream)),
    '-flags',
    'low_delay',
    ...NO_PROBING,
    '-copyts',
    '-f',
    'nut',
    '-i',
    'pipe:0',
    ...jobs.flatMap((job, index) =>
      outputOptions(
        job,
        index,
        tracks.findIndex(({ id }) => id === job.job.from.id),
      ),
    ),
  ];
}

function decoderOptions({ decoders, jobs, decodes }: Command, track: MediaTrack, stream: number): string[] {
  const decoder = decoders[stream];
  const options = decoder === undefined ? [] : [`-c:${stream}`, decoder.ffmpegName];
  if (track.type === 'audio') return options;
  // only images can be made of key frames alone: a video would freeze
  const onlyImages = jobs.every(({ job }) => job.from.id !== track.id || job.encoding.type === 'image');
  const skip = decodes.onlyKeyframes && onlyImages ? [`-skip_frame:${stream}`, 'nokey'] : [];
  return [...options, `-threads:${stream}`, String(decodes.threadCount), ...skip];
}

function outputOptions(job: ChosenJob, index: number, stream: number): string[] {
  return [
    '-map',
    `0:${stream}`,
    '-filter',
    filterChain(job),
    ...encoderOptions(job),
    // pipe mode: no syncpoints and no index, which ffmpeg keeps in memory for as long as it runs
    '-strict',
    'experimental',
    '-syncpoints',
    'none',
    '-write_index',
    '0',
    '-flush_packets',
    '1',
    '-f',
    'nut',
    `pipe:${FIRST_OUTPUT + index}`,
  ];
}

/** Keeps the time of every frame. */
const VIDEO_CLOCK = ['-fps_mode', 'passthrough', '-enc_time_base', '1:90000'];

function encoderOptions({ job: { from, encoding }, choice, resumeAt }: ChosenJob): string[] {
  const { ffmpegName } = choice;
  if (encoding.type === 'audio') return audioOptions(encoding, ffmpegName);
  if (from.type === 'audio') throw new Error('No image can be made of an audio track');
  if (encoding.type === 'image') {
    // each further thread would hold back one image
    return [...VIDEO_CLOCK, '-c:v', ffmpegName, '-threads', '1', ...imageForm(ffmpegName).options];
  }
  const keyFrames = forcedKeyFrames(from, encoding, resumeAt !== undefined);
  return [...VIDEO_CLOCK, '-force_key_frames', keyFrames, ...videoOptions(encoding, from, choice)];
}

/** Whether frames have to be uploaded to a device; ffmpeg has one device for all graphs. */
function uploads({ device }: Choice): boolean {
  return device !== undefined && device.encodeWith.length > 0;
}
