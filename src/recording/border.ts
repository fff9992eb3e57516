import { toSeconds } from '../core/timebase.ts';
import type { Packet } from '../core/packet.ts';
import type { Track } from '../core/track.ts';
import type { RecordedFile } from './recorded-file.ts';

/** How much of the leading track passes at most before the others have to have come to the border. */
const MAX_LAG_SECONDS = 3;

/**
 * Where one file of a recording ends and the next one begins: at the first picture of that. Audio that comes later than
 * it, but is from before, belongs to the end of the former file, or, where there is none that has its track, to none.
 */
export class Border {
  readonly former: RecordedFile | undefined;
  readonly #start: number;
  readonly #leader: number;
  /** Ids of the tracks that have not come to it. */
  readonly #late: Set<number>;

  /**
   * @param first packet of the leading track in the next file
   * @param tracks of that file
   * @param former the file before, if it can take what comes late
   */
  constructor(first: Packet, tracks: readonly Track[], former: RecordedFile | undefined) {
    this.former = former;
    // what would be in no file is kept from the decode time on
    this.#start = toSeconds(former === undefined ? first.dts : first.pts, first.track.timebase);
    this.#leader = first.track.id;
    const audio = first.track.type === 'video' ? tracks.filter(({ type }) => type === 'audio') : [];
    this.#late = new Set(audio.map(({ id }) => id));
  }

  /** All tracks have come to it, or had the time to. */
  get passed(): boolean {
    return this.#late.size === 0;
  }

  /** Whether a packet is from before it. To be asked once for each, in order, until it is passed. */
  isBehind({ track, dts, pts, duration }: Packet): boolean {
    if (track.id === this.#leader && toSeconds(dts, track.timebase) - this.#start > MAX_LAG_SECONDS) this.#late.clear();
    if (!this.#late.has(track.id)) return false;
    // a frame across it belongs where most of it is
    if (toSeconds(pts + duration / 2, track.timebase) < this.#start) return true;
    this.#late.delete(track.id);
    return false;
  }
}
