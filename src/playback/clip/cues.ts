import { readWebVttSample } from '../../containers/fmp4/web-vtt.ts';
import type { PlacedCue } from '../../core/cue-store.ts';
import { isCueText } from '../../core/subtitle-cue.ts';
import { asDamage, ClipError } from './error.ts';
import type { RecordedMp4, RecordedTrack } from './recording.ts';
import { firstSampleFrom, loadSamples, SampleCursor } from './samples.ts';

/** `vtte`, and nothing else. */
const EMPTY_BYTES = 8;
/** Limit of a sample: cues of one time have 128 KiB. */
const MAX_SAMPLE_BYTES = 1024 * 1024;

/**
 * Reads the cues of a time from the subtitles of a recording, cut to it.
 * @param begin of that time, in seconds of the movie, as is its end
 * @returns cues with times in milliseconds of the movie
 * @throws ClipError, SourceError
 */
export async function readCues(
  { source }: RecordedMp4,
  track: RecordedTrack,
  begin: number,
  end: number,
  signal?: AbortSignal,
): Promise<PlacedCue[]> {
  const { timescale, shift } = track;
  const ticks = (seconds: number): number => Math.floor(seconds * timescale - shift);
  const from = Math.max(0, (await firstSampleFrom(track, ticks(begin) + 1, signal)) - 1);
  const to = await firstSampleFrom(track, ticks(end), signal);
  const cursor = new SampleCursor(await loadSamples(track, from, Math.max(from, to), signal));
  const cues: (PlacedCue & { readonly source: number })[] = [];
  const ms = (time: number): number => Math.round(((time + shift) * 1000) / timescale);
  while (cursor.next()) {
    if (cursor.size <= EMPTY_BYTES) continue;
    if (cursor.size > MAX_SAMPLE_BYTES) throw new ClipError('damaged', 'its subtitles are too large');
    const start = Math.max(ms(cursor.dts), Math.round(begin * 1000));
    const until = Math.min(ms(cursor.dts + cursor.duration), Math.round(end * 1000));
    if (until <= start) continue;
    for (const cue of cuesOf(await source.read(cursor.at, cursor.size, signal))) {
      if (!isCueText(cue.text)) continue;
      const known = cues.findIndex((one) => one.source === cue.source && one.end === start && one.text === cue.text);
      if (known < 0) cues.push({ ...cue, start, end: until });
      else cues[known] = { ...(cues[known] as (typeof cues)[number]), end: until };
    }
  }
  return cues.map(({ source: _, ...cue }) => cue);
}

function cuesOf(sample: Buffer) {
  try {
    return readWebVttSample(sample);
  } catch (error) {
    throw asDamage(error);
  }
}
