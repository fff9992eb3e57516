import { toSeconds } from '../core/timebase.ts';
import type { Packet } from '../core/packet.ts';
import type { Track } from '../core/track.ts';
import type { RecordedFile } from './recorded-file.ts';

/** Progress of the leading track after which the other tracks are no longer awaited at the border. */
const MAX_LAG_SECONDS = 3;

/**
 * Border between two files of a recording: the first video frame of the next one. Audio that arrives later but
 * belongs before it goes to the end of the former file, or is dropped where that has no such track.
 */
export class Border {
  readonly former: RecordedFile | undefined;
  readonly #start: number;
  readonly #leader: number;
  /** Ids of tracks that have not reached it. */
  readonly #late: Set<number>;

  /**
   * @param first packet of the leading track in the next file
   * @param tracks tracks of that file
   * @param former the file before, if it can take late packets
   */
  constructor(first: Packet, tracks: readonly Track[], former: RecordedFile | undefined) {
    this.former = former;
    // without a former file, packets are kept from the decode time on
    this.#start = toSeconds(former === undefined ? first.dts : first.pts, first.track.timebase);
    this.#leader = first.track.id;
    const audio = first.track.type === 'video' ? tracks.filter(({ type }) => type === 'audio') : [];
    this.#late = new Set(audio.map(({ id }) => id));
  }

  /** Whether all tracks have reached it, or had the time to. */
  get passed(): boolean {
    return this.#late.size === 0;
  }

  /** Whether a packet belongs before it. To be called once for each packet, in order, until it is passed. */
  isBehind({ track, dts, pts, duration }: Packet): boolean {
    if (track.id === this.#leader && toSeconds(dts, track.timebase) - this.#start > MAX_LAG_SECONDS) this.#late.clear();
    if (!this.#late.has(track.id)) return false;
    // a frame across it belongs where most of it is
    if (toSeconds(pts + duration / 2, track.timebase) < this.#start) return true;
    this.#late.delete(track.id);
    return false;
  }
}
