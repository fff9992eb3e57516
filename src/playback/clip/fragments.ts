import { fragmentHead, type Run, type Sample } from '../../containers/fmp4/fragment.ts';
import type { ByteSource } from '../byte-source.ts';
import type { Range } from './cut.ts';
import { ClipError } from './error.ts';
import { lastAtMost } from './marks.ts';
import type { RecordedTrack } from './recording.ts';
import { loadSamples, SampleCursor } from './samples.ts';

/** Samples of a track that are written as fragments. */
export interface FragmentRange extends Range {
  /** Ticks from times of the recording's media to those that are written. */
  readonly shift: number;
}

/** Duration of a fragment; key frames at about that time begin one. */
const FRAGMENT_SECONDS = 1;
/** Limit of a fragment's media. */
const MAX_FRAGMENT_BYTES = 64 * 1024 * 1024;
/** Bytes between samples that are read with them rather than skipped. */
const NEAR_BYTES = 64 * 1024;

/** Tolerance of times that were in seconds. */
const ROUNDING_TICKS = 0.01;

/** Place of a sample. */
interface Place {
  readonly at: number;
  readonly size: number;
}

/**
 * Writes samples of a recording as fragments of about a second. Each is read from it when it is asked for.
 * @param sequence number of the first fragment, from 1
 * @returns `moof`, the head of `mdat`, and its media, for each
 * @throws ClipError, SourceError
 */
export async function* fragments(
  source: ByteSource,
  ranges: readonly FragmentRange[],
  sequence: number,
  signal?: AbortSignal,
): AsyncGenerator<Buffer[]> {
  const tracks = ranges.map((range) => ({ ...range, next: range.from }));
  const leader = tracks.find(({ track }) => track.type === 'video') ?? tracks[0];
  if (leader === undefined) return;
  // in seconds of the movie
  let time = Math.min(...tracks.map(({ track, dts }) => decodeTime(track, dts)));
  while (tracks.some(({ next, to }) => next < to)) {
    const end = boundary(leader, time);
    const runs: { readonly range: FragmentRange; readonly dts: number; readonly samples: Placed[] }[] = [];
    for (const range of tracks) {
      const { dts, samples } = await samplesBefore(range, end, signal);
      range.next += samples.length;
      if (samples.length > 0) runs.push({ range, dts, samples });
    }
    time = end;
    if (runs.length === 0) {
      time = Math.max(time, await nextTime(tracks, signal));
      continue;
    }
    const media = new Media(source, signal);
    await media.read(runs.flatMap(({ samples }) => samples));
    const written = runs.map(({ range: { track, shift }, dts, samples }): Run => {
      const own = samples.map((one): Sample => ({ ...one, data: media.at(one) }));
      return { type: track.type, trackId: track.id, baseTime: Math.max(0, dts + shift), samples: own };
    });
    yield [fragmentHead(sequence++, written), ...written.flatMap(({ samples }) => samples.map(({ data }) => data))];
  }
}

type Placed = Omit<Sample, 'data'> & Place;

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

/** Time of the next sample of any track. */
async function nextTime(tracks: readonly (FragmentRange & { readonly next: number })[], signal?: AbortSignal) {
  const times: number[] = [];
  for (const { track, next, to } of tracks)
    if (next < to) times.push(decodeTime(track, (await loadSamples(track, next, next + 1, signal)).dts));
  return Math.min(...times);
}

/** The next samples of a track that are decoded before a time. */
async function samplesBefore(
  { track, next, to }: FragmentRange & { readonly next: number },
  end: number,
  signal: AbortSignal | undefined,
) {
  const { marks, shift, timescale } = track;
  const ticks = Math.ceil(end * timescale - shift - ROUNDING_TICKS);
  const after = lastAtMost(marks.dts, ticks) + 1;
  const loaded = await loadSamples(track, next, Math.max(next, Math.min(to, marks.sample[after] ?? to)), signal);
  const samples: Placed[] = [];
  const cursor = new SampleCursor(loaded);
  while (cursor.next() && cursor.dts < ticks) {
    const { duration, offset: compositionOffset, key, at, size } = cursor;
    samples.push({ duration, compositionOffset, key, at, size });
  }
  return { dts: loaded.dts, samples };
}

/** Reads samples that are near each other at once. */
class Media {
  readonly #source: ByteSource;
  readonly #signal: AbortSignal | undefined;
  /** Positions of what was read. */
  readonly #places: number[] = [];
  readonly #bytes: Buffer[] = [];

  constructor(source: ByteSource, signal: AbortSignal | undefined) {
    this.#source = source;
    this.#signal = signal;
  }

  async read(places: readonly Place[]): Promise<void> {
    if (places.reduce((sum, { size }) => sum + size, 0) > MAX_FRAGMENT_BYTES)
      throw new ClipError('unsupported', 'a second of the recording is too large');
    const sorted = [...places].sort((one, other) => one.at - other.at);
    const spans: { at: number; end: number }[] = [];
    for (const { at, size } of sorted) {
      const last = spans.at(-1);
      if (last !== undefined && at - last.end <= NEAR_BYTES) last.end = Math.max(last.end, at + size);
      else spans.push({ at, end: at + size });
    }
    for (const { at, end } of spans) {
      this.#places.push(at);
      this.#bytes.push(await this.#source.read(at, end - at, this.#signal));
    }
  }

  /** Bytes of a sample that was read. */
  at({ at, size }: Place): Buffer {
    const index = lastAtMost(this.#places, at);
    const from = at - (this.#places[index] as number);
    return (this.#bytes[index] as Buffer).subarray(from, from + size);
  }
}
