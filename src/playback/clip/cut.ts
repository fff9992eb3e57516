import { lastAtMost } from './marks.ts';
import type { RecordedMp4, RecordedTrack } from './recording.ts';
import { durationOf, firstSampleFrom, loadSamples, SampleCursor } from './samples.ts';

/** Samples of a track. */
export interface Range {
  readonly track: RecordedTrack;
  readonly from: number;
  /** After the last one. */
  readonly to: number;
  /** Decode time of the first one, in ticks of the media, without what is cut of it. */
  readonly dts: number;
  /** Ticks that are cut of the beginning of the first one, and of the end of the last one: of subtitles. */
  readonly late?: number;
  readonly early?: number;
}

/** Samples of a recording that are needed to show a span of it. */
export interface Cut {
  readonly recording: RecordedMp4;
  /** Time of the first frame that is shown, and end of the last one, in seconds of the movie. */
  readonly start: number;
  readonly end: number;
  /** One for each track: from a key frame on, of audio from somewhat before. A range may be empty. */
  readonly ranges: readonly Range[];
}

/** Audio before the cut that its decoder needs to be in order: 80 ms of Opus, a frame or two of AAC. */
const PREROLL_SECONDS = 0.1;
/** A frame that is shown for longer, as in front of a gap, ends with the cut. */
const MAX_OVERHANG_SECONDS = 0.5;
/** Frames that may be decoded after a key frame, and shown before it. */
const REORDERED = 32;
/** Tolerance of times that were in seconds. */
const ROUNDING_TICKS = 0.01;

/**
 * Finds what shows the frames whose times are from `start` on and before `end`, in seconds of the movie.
 * @returns undefined if there is no frame
 * @throws ClipError, SourceError
 */
export async function cut(
  recording: RecordedMp4,
  start: number,
  end: number,
  signal?: AbortSignal,
): Promise<Cut | undefined> {
  const span = await spanOf(recording, start, end, signal);
  if (span === undefined || span.end <= span.start) return undefined;
  const ranges: Range[] = [];
  for (const track of recording.tracks) ranges.push(await rangeOf(track, span, signal));
  return { recording, ...span, ranges };
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Span of whole frames of the leading track; of audio it is the very one. */
async function spanOf(
  { leader, begin, end: last }: RecordedMp4,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Span | undefined> {
  if (leader.type === 'audio') return { start: Math.max(start, begin), end: Math.min(end, last) };
  const first = await shownFrom(leader, ticksOf(leader, start), signal);
  if (first === undefined) return undefined;
  const cutAt = ticksOf(leader, end);
  if (first >= cutAt) return undefined;
  const after = end >= last ? undefined : await shownFrom(leader, cutAt, signal);
  const shown = after ?? leader.lead + leader.duration;
  const isLong = shown - cutAt > MAX_OVERHANG_SECONDS * leader.timescale;
  return { start: secondsOf(leader, first), end: isLong ? end : secondsOf(leader, shown) };
}

/** Time of the first frame that is shown at a time or later, in ticks of the media. */
async function shownFrom(track: RecordedTrack, ticks: number, signal?: AbortSignal): Promise<number | undefined> {
  const { marks, samples } = track;
  const mark = Math.max(0, lastAtMost(marks.shown, ticks));
  const to = (marks.sample[mark + 1] ?? samples) + REORDERED;
  const from = marks.sample[mark] as number;
  const cursor = new SampleCursor(await loadSamples(track, from, Math.min(to, samples), signal));
  let first = Infinity;
  while (cursor.next() && cursor.dts < first) if (cursor.shown >= ticks) first = Math.min(first, cursor.shown);
  return first === Infinity ? undefined : first;
}

async function rangeOf(track: RecordedTrack, { start, end }: Span, signal?: AbortSignal): Promise<Range> {
  const to = await endOf(track, ticksOf(track, end), signal);
  if (track.type === 'video') {
    const mark = Math.max(0, lastAtMost(track.marks.shown, ticksOf(track, start)));
    const from = track.marks.sample[mark] as number;
    return { track, from, to: Math.max(from, to), dts: track.marks.dts[mark] as number };
  }
  if (track.type === 'subtitle') return await subtitleRange(track, start, end, signal);
  const early = await firstSampleFrom(track, ticksOf(track, start - PREROLL_SECONDS), signal);
  const from = Math.max(0, Math.min(early, to) - 1);
  const { dts } = await loadSamples(track, from, Math.min(from + 1, track.samples), signal);
  return { track, from, to, dts };
}

/** Range of the very span: players differ in what they make of a long sample that an edit list begins in. */
async function subtitleRange(track: RecordedTrack, start: number, end: number, signal?: AbortSignal): Promise<Range> {
  const { timescale, shift, samples } = track;
  const begin = Math.round(start * timescale - shift);
  const until = Math.round(end * timescale - shift);
  const from = Math.max(0, (await firstSampleFrom(track, begin + 1, signal)) - 1);
  const to = Math.max(from, await firstSampleFrom(track, until, signal));
  const first = await loadSamples(track, from, Math.min(from + 1, samples), signal);
  const late = Math.max(0, begin - first.dts);
  const last = await loadSamples(track, Math.max(0, to - 1), to, signal);
  const isEmpty = to === from || late >= durationOf(first);
  const early = Math.max(0, last.dts + durationOf(last) - until);
  return { track, from, to: isEmpty ? from : to, dts: first.dts + late, late, early };
}

/** Sample after the last one that is shown before a time. */
async function endOf(track: RecordedTrack, ticks: number, signal?: AbortSignal): Promise<number> {
  const { marks, samples } = track;
  const mark = lastAtMost(marks.shown, ticks);
  const from = mark < 0 ? 0 : (marks.sample[mark] as number);
  const to = Math.min((marks.sample[mark + 1] ?? samples) + REORDERED, samples);
  const cursor = new SampleCursor(await loadSamples(track, from, to, signal));
  let last = from;
  while (cursor.next()) if (cursor.shown < ticks) last = cursor.index + 1;
  return last;
}

/** Ticks of the media of a time of the movie. */
function ticksOf({ timescale, shift }: RecordedTrack, seconds: number): number {
  return Math.ceil(seconds * timescale - shift - ROUNDING_TICKS);
}

function secondsOf({ timescale, shift }: RecordedTrack, ticks: number): number {
  return (ticks + shift) / timescale;
}
