import type { ReadAt } from '../containers/file-muxer.ts';

/** Longest cue that Kiln writes, and more. */
const TAIL_BYTES = 256 * 1024;
const BLANK_LINE = '\n\n';
const HEAD_BYTES = 'WEBVTT\n\n'.length;

/** Bytes of the whole cues of a WebVTT file that was interrupted, each of which ends with a blank line; 0 for none. */
export async function wholeVtt(read: ReadAt, size: number): Promise<number> {
  const from = Math.max(0, size - TAIL_BYTES);
  const end = (await read(from, size - from)).lastIndexOf(BLANK_LINE);
  const whole = end < 0 ? 0 : from + end + BLANK_LINE.length;
  return whole > HEAD_BYTES ? whole : 0;
}
