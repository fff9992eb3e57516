import { runProgram } from '../../lib/run-program.ts';
import { measureArguments, probeArguments } from './media-command.ts';
import { MediaError } from './media-error.ts';
import { readMediaInfo, type MediaInfo } from './media-info.ts';

export const PROBE_MS = 10_000;
/** Time limit for reading a whole file that declares no length. */
export const MEASURE_MS = 120_000;

/** Probes a media file. @param ffmpeg path of the program @param input descriptor of the file @throws MediaError */
export async function probeMedia(ffmpeg: string, input: number): Promise<MediaInfo> {
  const info = readMediaInfo(await run(ffmpeg, probeArguments(), input, PROBE_MS, true));
  if (info === undefined || (info.video === undefined && info.audio.length === 0))
    throw new MediaError('there is neither audio nor video in the file');
  return info;
}

/**
 * Measures a file in milliseconds by reading it to its end. Parameters as above. @returns undefined when ffmpeg
 * reports none @throws MediaError
 */
export async function measureMedia(ffmpeg: string, input: number): Promise<number | undefined> {
  const output = await run(ffmpeg, measureArguments(), input, MEASURE_MS, false);
  const [, last] = [...output.matchAll(/^out_time_us=(\d+)$/gm)].at(-1) ?? [];
  return last === undefined ? undefined : Math.round(Number(last) / 1000);
}

async function run(
  ffmpeg: string,
  args: readonly string[],
  input: number,
  timeoutMs: number,
  answersOnStderr: boolean,
): Promise<string> {
  try {
    return await runProgram(ffmpeg, args, { timeoutMs, input, answersOnStderr });
  } catch (error) {
    throw new MediaError(`ffmpeg cannot read the file: ${(error as Error).message}`);
  }
}
