import { type Range } from './cut.ts';
import { fragmentedHead } from './fragmented-head.ts';
import { fragments } from './fragments.ts';
import type { RecordedMp4, RecordedTrack } from './recording.ts';
import { firstSampleFrom, loadSamples } from './samples.ts';

/** A piece of a recording from one key frame to another. */
export interface RecordedSegment {
  /** Samples of the leading track: the first one, and the one after the last. */
  readonly from: number;
  readonly to: number;
  /** Seconds from the recording's first frame. */
  readonly start: number;
  /** Seconds. */
  readonly duration: number;
}

/** Part of the target that is enough: a key frame interval is seldom exact. */
const ENOUGH = 0.99;

/** Cuts a recording at key frames. @param target duration of a segment, in seconds; they are longer if key frames are */
export function segmentsOf({ leader }: RecordedMp4, target: number): RecordedSegment[] {
  const { marks, timescale, samples } = leader;
  const { sample, shown } = marks;
  const end = leader.lead + leader.duration;
  const segments: RecordedSegment[] = [];
  let from = 0;
  for (let next = 1; next <= sample.length; next++) {
    const begin = shown[from] as number;
    const until = shown[next] ?? end;
    if (next < sample.length && (until - begin) / timescale < target * ENOUGH) continue;
    segments.push({
      from: sample[from] as number,
      to: sample[next] ?? samples,
      start: (begin - leader.lead) / timescale,
      duration: (until - begin) / timescale,
    });
    from = next;
  }
  return segments;
}

/** Tracks of segments: players of muxed segments take one of each kind. */
export function segmentTracks({ tracks }: RecordedMp4): RecordedTrack[] {
  const first = (kind: RecordedTrack['type']) => tracks.filter(({ type }) => type === kind).slice(0, 1);
  return [...first('video'), ...first('audio')];
}

/** Initialization segment of segments of a recording. */
export function initOf(recording: RecordedMp4): Buffer {
  return fragmentedHead(
    segmentTracks(recording).map((track) => ({ track })),
    0,
  );
}

/**
 * Writes a segment: fragments of about a second, with times of the recording.
 * @param sequence number of its first fragment, from 1
 * @throws ClipError, SourceError
 */
export async function* readSegment(
  recording: RecordedMp4,
  { from, to }: Pick<RecordedSegment, 'from' | 'to'>,
  sequence: number,
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  const { source, leader } = recording;
  const isFirst = from <= (leader.marks.sample[0] as number);
  const begin = isFirst ? -Infinity : await decodeTime(leader, from, signal);
  const end = to >= leader.samples ? Infinity : await decodeTime(leader, to, signal);
  const ranges: (Range & { readonly shift: number })[] = [];
  for (const track of segmentTracks(recording)) {
    const { shift } = track;
    const own = track === leader ? { from, to } : await between(track, begin, end, signal);
    if (own.from >= own.to) continue;
    const { dts } = await loadSamples(track, own.from, own.from + 1, signal);
    ranges.push({ track, ...own, dts, shift });
  }
  yield* fragments(source, ranges, sequence, signal);
}

/** Seconds of the movie. */
async function decodeTime(track: RecordedTrack, sample: number, signal?: AbortSignal): Promise<number> {
  const { dts } = await loadSamples(track, sample, sample + 1, signal);
  return (dts + track.shift) / track.timescale;
}

/** Samples of a track that are decoded from a time on, and before another. */
async function between(track: RecordedTrack, begin: number, end: number, signal?: AbortSignal) {
  const { shift, timescale } = track;
  const first = (time: number) => firstSampleFrom(track, Math.ceil(time * timescale - shift - 0.01), signal);
  return { from: await first(begin), to: await first(end) };
}
