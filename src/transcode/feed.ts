import { NutError } from '../containers/nut/error.ts';
import { NutWriter } from '../containers/nut/writer.ts';
import type { Packet } from '../core/packet.ts';
import type { Consumer } from '../core/reader.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import type { FaultLog } from '../log.ts';
import { nutStreamOf } from './bitstream.ts';
import type { FfmpegChild } from './child.ts';
import { OFFSET_SECONDS } from './frame-grid.ts';

/** How far a track has been handed over, times in its ticks; undefined before its first packet. */
interface Progress {
  readonly index: number;
  readonly offset: number;
  firstPts: number | undefined;
  lastPts: number;
  lastDts: number;
}

/** The tracks that a child decodes, as one NUT; packets of other tracks pass by. A picture begins with a key frame. */
export class Feed implements Consumer {
  readonly #child: FfmpegChild;
  readonly #writer: NutWriter;
  readonly #faults: FaultLog;
  readonly #tracks: ReadonlyMap<Track, Progress>;
  #fullSince: number | undefined;
  #last = false;

  /** @throws BitstreamError when the configuration of a track is malformed */
  constructor(tracks: readonly MediaTrack[], child: FfmpegChild, faults: FaultLog) {
    this.#child = child;
    this.#faults = faults;
    this.#writer = new NutWriter(tracks.map(nutStreamOf));
    this.#tracks = new Map(tracks.map((track, index): [Track, Progress] => {
      const offset = (OFFSET_SECONDS * track.timebase.den) / track.timebase.num;
      return [track, { index, offset, firstPts: undefined, lastPts: 0, lastDts: 0 }];
    }));
    child.write(this.#writer.header());
  }

  /** Since when the child has taken nothing though there is something for it, by `performance.now()`. */
  get fullSince(): number | undefined {
    return this.#fullSince;
  }

  packet({ track, dts, pts, key, data }: Packet): boolean {
    const progress = this.#tracks.get(track);
    if (progress === undefined || (progress.firstPts === undefined && !key)) return true;
    let head: Buffer;
    try {
      head = this.#writer.head(progress.index, pts + progress.offset, key, data.length);
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
    const progress = this.#tracks.get(track);
    if (progress?.firstPts === undefined) return undefined;
    return { from: toSeconds(progress.firstPts, track.timebase), to: toSeconds(progress.lastPts, track.timebase) };
  }

  /** The time in front of which every frame of a track was handed over, in its ticks; undefined before its first packet. */
  edge(track: MediaTrack): number | undefined {
    const progress = this.#tracks.get(track);
    if (progress?.firstPts === undefined) return undefined;
    // later frames are presented when they are decoded or later
    return progress.lastDts + 1;
  }
}
