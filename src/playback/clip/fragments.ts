import { fragmentHead, type RunHead } from '../../containers/fmp4/fragment.ts';
import type { ByteSource } from '../byte-source.ts';
import type { Range } from './cut.ts';
import { ClipError } from './error.ts';
import { lastAtMost } from './marks.ts';
import type { RecordedTrack } from './recording.ts';
import { readParts, type ByteSpan } from './read-parts.ts';
import { SampleFeed, type PlacedSample } from './sample-feed.ts';

/** Samples of a track that are written as fragments. */
export interface FragmentRange extends Range {
  /** Ticks from times of the recording's media to those that are written. */
  readonly shift: number;
}

/** Duration of a fragment; key frames at about that time begin one. */
const FRAGMENT_SECONDS = 1;
/** Limit of a fragment's media. */
const MAX_FRAGMENT_BYTES = 64 * 1024 * 1024;

/** Tolerance of times that were in seconds. */
const ROUNDING_TICKS = 0.01;

/**
 * Writes samples of a recording as fragments of about a second, in pieces. Each is read from it when it is asked for.
 * @param sequence number of the first fragment, from 1
 * @returns the number of the one after the last
 * @throws ClipError, SourceError
 */
export async function* fragments(
  source: ByteSource,
  ranges: readonly FragmentRange[],
  sequence: number,
  signal?: AbortSignal,
): AsyncGenerator<Buffer, number> {
  for await (const parts of fragmentsOf(source, ranges, sequence, signal)) {
    sequence++;
    yield* readParts(parts, signal);
  }
  return sequence;
}

/** `moof`, the head of `mdat`, and its media, for each. */
async function* fragmentsOf(
  source: ByteSource,
  ranges: readonly FragmentRange[],
  sequence: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<(Buffer | ByteSpan)[]> {
  const feeds = ranges.map((range) => new SampleFeed(range, signal));
  const leader = ranges.find(({ track }) => track.type === 'video') ?? ranges[0];
  if (leader === undefined) return;
  for (let time = await nextTime(feeds); time < Infinity;) {
    const end = boundary(leader, time);
    const heads: (RunHead & { readonly samples: readonly PlacedSample[] })[] = [];
    for (const feed of feeds) {
      const { track, shift } = feed.range;
      const dts = await feed.next();
      const samples = await feed.takeBefore(Math.ceil(end * track.timescale - track.shift - ROUNDING_TICKS));
      if (dts === undefined || samples.length === 0) continue;
      heads.push({ type: track.type, trackId: track.id, baseTime: Math.max(0, dts + shift), samples });
    }
    time = Math.max(end, await nextTime(feeds));
    if (heads.length === 0) continue;
    const spans = spansOf(
      source,
      heads.flatMap(({ samples }) => samples),
    );
    yield [fragmentHead(sequence++, heads), ...spans];
  }
}

/** The bytes of samples, one after another. */
function spansOf(source: ByteSource, samples: readonly PlacedSample[]): ByteSpan[] {
  const spans: { source: ByteSource; from: number; to: number }[] = [];
  let bytes = 0;
  for (const { at, data } of samples) {
    const last = spans.at(-1);
    if (last?.to === at) last.to += data.length;
    else spans.push({ source, from: at, to: at + data.length });
    bytes += data.length;
  }
  if (bytes > MAX_FRAGMENT_BYTES) throw new ClipError('unsupported', 'a second of the recording is too large');
  return spans;
}

function decodeTime({ timescale, shift }: RecordedTrack, dts: number): number {
  return (dts + shift) / timescale;
}

/** Where the fragment from a time on ends: at a key frame, if there is one about then. */
function boundary({ track }: FragmentRange, time: number): number {
  const { marks, shift, timescale } = track;
  const most = (time + 1.5 * FRAGMENT_SECONDS) * timescale - shift;
  const key = marks.dts[lastAtMost(marks.dts, most)];
  const keyTime = key === undefined ? -Infinity : decodeTime(track, key);
  return keyTime > time + FRAGMENT_SECONDS / 2 ? keyTime : time + FRAGMENT_SECONDS;
}

/** Time of the next sample of any track, in seconds of the movie; Infinity after the last one. */
async function nextTime(feeds: readonly SampleFeed<FragmentRange>[]): Promise<number> {
  let time = Infinity;
  for (const feed of feeds) {
    const dts = await feed.next();
    if (dts !== undefined) time = Math.min(time, decodeTime(feed.range.track, dts));
  }
  return time;
}
