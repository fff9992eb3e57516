import { NutError } from '../containers/nut/error.ts';
import { NutWriter } from '../containers/nut/writer.ts';
import type { Packet } from '../core/packet.ts';
import type { Consumer } from '../core/reader.ts';
import { toSeconds } from '../core/timebase.ts';
import { sameFormat, type MediaTrack, type Track } from '../core/track.ts';
import type { FaultLog } from '../log/log.ts';
import type { FfmpegChild } from '../media-child/child.ts';
import { OFFSET_SECONDS } from './frame-grid.ts';
import { nutStreamOf } from './nut-stream.ts';

/** Progress of a track, times in its ticks; `firstPts` is undefined before its first packet. */
interface Progress {
  readonly index: number;
  readonly offset: number;
  firstPts: number | undefined;
  lastPts: number;
  lastDts: number;
}

/** A track as declared to the child, and as the packets have it now. */
interface Lane {
  readonly declared: MediaTrack;
  readonly progress: Progress;
  now: Track;
  /** Whether the decoder of `declared` can decode `now`. */
  fits: boolean;
}

/**
 * Writes the tracks that a child decodes as one NUT, video from a key frame on. Ignores packets of other tracks, or of
 * another format.
 */
export class Feed implements Consumer {
  readonly #child: FfmpegChild;
  readonly #writer: NutWriter;
  readonly #faults: FaultLog;
  /** By track id. */
  readonly #lanes: ReadonlyMap<number, Lane>;
  #fullSince: number | undefined;
  #last = false;

  /** @throws BitstreamError when the configuration of a track is malformed */
  constructor(tracks: readonly MediaTrack[], child: FfmpegChild, faults: FaultLog) {
    this.#child = child;
    this.#faults = faults;
    this.#writer = new NutWriter(tracks.map(nutStreamOf));
    this.#lanes = new Map(
      tracks.map((declared, index): [number, Lane] => {
        const offset = (OFFSET_SECONDS * declared.timebase.den) / declared.timebase.num;
        const progress = { index, offset, firstPts: undefined, lastPts: 0, lastDts: 0 };
        return [declared.id, { declared, progress, now: declared, fits: true }];
      }),
    );
    child.write(this.#writer.header());
  }

  /** Time since which the child has accepted no input, by `performance.now()`; undefined while it does. */
  get fullSince(): number | undefined {
    return this.#fullSince;
  }

  packet({ track, dts, pts, key, data }: Packet): boolean {
    const progress = this.#progressOf(track);
    if (progress === undefined || (progress.firstPts === undefined && !key)) return true;
    let head: Buffer;
    try {
      head = this.#writer.head(progress.index, pts + progress.offset, key !== false, data.length);
    } catch (error) {
      if (!(error instanceof NutError)) throw error;
      this.#faults.count(`the input: ${error.message}`);
      return true;
    }
    progress.firstPts ??= pts;
    progress.lastPts = Math.max(progress.lastPts, pts);
    progress.lastDts = dts;
    if (this.#child.write(head, data) || this.#last) return true;
    this.#fullSince ??= performance.now();
    return false;
  }

  /** Notes that the child accepts input again. */
  drained(): void {
    this.#fullSince = undefined;
  }

  /** Accepts all further packets, the last ones, even if the child's input is full. */
  takeLast(): void {
    this.#last = true;
  }

  /** Times of a track that were written, in seconds; undefined before its first packet. */
  fed(track: MediaTrack): { from: number; to: number } | undefined {
    const progress = this.#lanes.get(track.id)?.progress;
    if (progress?.firstPts === undefined) return undefined;
    return { from: toSeconds(progress.firstPts, track.timebase), to: toSeconds(progress.lastPts, track.timebase) };
  }

  /**
   * Time before which every frame of a track was written, in its ticks; undefined before its first packet.
   * @param isLast whether no later frame has the track's format: then all later ones are shown after these
   */
  edge(track: MediaTrack, isLast: boolean): number | undefined {
    const progress = this.#lanes.get(track.id)?.progress;
    if (progress?.firstPts === undefined) return undefined;
    // later frames are presented when they are decoded or later
    return (isLast ? progress.lastPts : progress.lastDts) + 1;
  }

  #progressOf(track: Track): Progress | undefined {
    const lane = this.#lanes.get(track.id);
    if (lane === undefined) return undefined;
    if (lane.now !== track) {
      lane.now = track;
      lane.fits = sameFormat(track, lane.declared);
    }
    return lane.fits ? lane.progress : undefined;
  }
}
