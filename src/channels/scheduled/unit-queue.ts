import { isMedia } from '../../core/track.ts';
import { unitLength, type ItemUnit } from './item-source.ts';

interface Lane {
  readonly units: ItemUnit[];
  bytes: number;
}

/** Units of an item that wait for their time, by track in decode order. */
export class UnitQueue {
  readonly #lanes = new Map<number, Lane>();
  #newest = -Infinity;

  /** First unit of all tracks in decode order. */
  get next(): ItemUnit | undefined {
    return this.#first?.units[0];
  }

  get bytes(): number {
    let bytes = 0;
    for (const lane of this.#lanes.values()) bytes += lane.bytes;
    return bytes;
  }

  /** Milliseconds from the first to the newest unit. */
  get span(): number {
    const { next } = this;
    return next === undefined ? 0 : this.#newest - next.at;
  }

  /** Number of audio and video tracks with waiting units. */
  get filled(): number {
    let filled = 0;
    for (const { units } of this.#lanes.values()) if (units[0] !== undefined && isMedia(units[0].track)) filled++;
    return filled;
  }

  push(unit: ItemUnit): void {
    const lane = this.#lanes.get(unit.track.id) ?? { units: [], bytes: 0 };
    this.#lanes.set(unit.track.id, lane);
    lane.units.push(unit);
    lane.bytes += unit.data.length;
    if (unit.at > this.#newest) this.#newest = unit.at;
  }

  /** Takes the first unit in decode order. */
  take(): ItemUnit | undefined {
    const lane = this.#first;
    const unit = lane?.units.shift();
    if (lane !== undefined && unit !== undefined) lane.bytes -= unit.data.length;
    return unit;
  }

  /** Waiting units of each track, in decode order. */
  *lanes(): IterableIterator<readonly ItemUnit[]> {
    for (const { units } of this.#lanes.values()) if (units.length > 0) yield units;
  }

  /**
   * Drops units that are not needed to begin at a key frame of video: earlier ones of its track, and those of other
   * tracks that are shown earlier.
   */
  beginWith(first: ItemUnit): void {
    for (const lane of this.#lanes.values()) {
      const { units } = lane;
      const from =
        units[0]?.track.id === first.track.id
          ? units.indexOf(first)
          : units.findIndex(({ shownAt }) => shownAt >= first.shownAt);
      for (const { data } of units.splice(0, from < 0 ? units.length : from)) lane.bytes -= data.length;
    }
  }

  /** Drops audio that ends before a time of the item. */
  dropAudio(time: number): void {
    for (const lane of this.#lanes.values()) {
      const { units } = lane;
      while (units[0]?.track.type === 'audio' && middleOf(units[0]) < time)
        lane.bytes -= (units.shift() as ItemUnit).data.length;
    }
  }

  clear(): void {
    this.#lanes.clear();
  }

  get #first(): Lane | undefined {
    let first: Lane | undefined;
    let at = Infinity;
    for (const lane of this.#lanes.values()) {
      const unit = lane.units[0];
      if (unit === undefined || unit.at >= at) continue;
      first = lane;
      ({ at } = unit);
    }
    return first;
  }
}

/** Middle of an audio frame, in milliseconds. */
function middleOf(unit: ItemUnit): number {
  return unit.shownAt + unitLength(unit) / 2;
}
