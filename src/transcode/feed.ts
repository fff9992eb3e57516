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

/** How far a track has been handed over, times in its ticks; undefined before its first packet. */
interface Progress {
  readonly index: number;
  readonly offset: number;
  firstPts: number | undefined;
  lastPts: number;
  lastDts: number;
}

/** A track as the child was told of it, and as the packets have it now. */
interface Lane {
  readonly told: MediaTrack;
  readonly progress: Progress;
  now: Track;
  /** Whether what decodes the one goes on with the other. */
  fits: boolean;
}

/**
 * The tracks that a child decodes, as one NUT; packets of other tracks, or of another format, pass by. A picture begins
 * with a key frame.
 */
export class Feed implements Consumer {
  readonly #child: FfmpegChild;
  readonly #writer: NutWriter;
  readonly #faults: FaultLog;
  /** By id of the track. */
  readonly #lanes: ReadonlyMap<number, Lane>;
  #fullSince: number | undefined;
  #last = false;

  /** @throws BitstreamError when the configuration of a track is malformed */
  constructor(tracks: readonly MediaTrack[], child: FfmpegChild, faults: FaultLog) {
    this.#child = child;
    this.#faults = faults;
    this.#writer = new NutWriter(tracks.map(nutStreamOf));
    this.#lanes = new Map(
      tracks.map((told, index): [number, Lane] => {
        const offset = (OFFSET_SECONDS * told.timebase.den) / told.timebase.num;
        const progress = { index, offset, firstPts: undefined, lastPts: 0, lastDts: 0 };
        return [told.id, { told, progress, now: told, fits: true }];
      }),
    );
    child.write(this.#writer.header());
  }

  /** Since when the child has taken nothing though there is something for it, by `performance.now()`. */
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

  /** The child takes input again. */
  drained(): void {
    this.#fullSince = undefined;
  }

  /** What comes now is the last: all of it is taken, whether the child can or not. */
  takeLast(): void {
    this.#last = true;
  }

  /** Which times of a track were handed over, in seconds; undefined before its first packet. */
  fed(track: MediaTrack): { from: number; to: number } | undefined {
    const progress = this.#lanes.get(track.id)?.progress;
    if (progress?.firstPts === undefined) return undefined;
    return { from: toSeconds(progress.firstPts, track.timebase), to: toSeconds(progress.lastPts, track.timebase) };
  }

  /**
   * The time in front of which every frame of a track was handed over, in its ticks; undefined before its first packet.
   * @param isLast whether no other frame has the track's format: what comes is shown after all of these
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
      lane.fits = sameFormat(track, lane.told);
    }
    return lane.fits ? lane.progress : undefined;
  }
}
