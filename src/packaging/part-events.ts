import type { DataTrack } from '../core/track.ts';

/** A track whose events HLS packages carry. */
export interface CarriedTrack extends DataTrack {
  readonly codec: 'ID3v2' | 'SCTE35' | 'KLV';
}

/** An event with its place in the stream; times are media time in seconds. */
export interface TimedEvent {
  /** Unique in the stream, 32 bits; the same on every track that carries the event. */
  readonly id: number;
  readonly track: CarriedTrack;
  readonly data: Buffer;
  /** Time of arrival. */
  readonly at: number;
  /** Time at which it takes effect. */
  readonly time: number;
}

const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 1024 * 1024;
/** Events older than the media by more than this are dropped. */
const MAX_LATE_SECONDS = 10;

export function isCarried(track: DataTrack): track is CarriedTrack {
  return track.codec === 'ID3v2' || track.codec === 'SCTE35' || track.codec === 'KLV';
}

/** Holds events until the part that covers their time: media from an encoder may be seconds late. */
export class WaitingEvents {
  #waiting: TimedEvent[] = [];
  #bytes = 0;
  /** How many of the first events go out with the next part, whatever their time. */
  #released = 0;

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @returns false if an older event was dropped for it */
  add(event: TimedEvent): boolean {
    this.#waiting.push(event);
    this.#bytes += event.data.length;
    let fits = true;
    while (this.#waiting.length > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES) {
      this.#bytes -= (this.#waiting.shift() as TimedEvent).data.length;
      this.#released = Math.max(0, this.#released - 1);
      fits = false;
    }
    return fits;
  }

  /** Sends all waiting events with the next part: its timeline is a new one. */
  release(): void {
    this.#released = this.#waiting.length;
  }

  /** Drops all events: no media follows. */
  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
    this.#released = 0;
  }

  /**
   * Takes the events of a range of media time, and those too late for the media before. None takes effect before the
   * range begins.
   */
  take(from: number, to: number): TimedEvent[] {
    const taken: TimedEvent[] = [];
    const left: TimedEvent[] = [];
    for (const [index, event] of this.#waiting.entries()) {
      if (index < this.#released) taken.push({ ...event, at: from, time: from });
      else if (event.at >= to) left.push(event);
      else if (event.at >= from - MAX_LATE_SECONDS)
        taken.push({ ...event, at: Math.max(event.at, from), time: Math.max(event.time, from) });
    }
    this.#waiting = left;
    this.#bytes = left.reduce((sum, { data }) => sum + data.length, 0);
    this.#released = 0;
    return taken;
  }
}
