import type { DataTrack } from '../core/track.ts';

/** A track whose events packages of HLS have a place for. */
export interface CarriedTrack extends DataTrack {
  readonly codec: 'ID3v2' | 'SCTE35';
}

/** An event, and where it belongs in its stream; times are media time in seconds. */
export interface TimedEvent {
  /** Unique in the stream, in 32 bits. It is the same on every track that the event goes out with. */
  readonly id: number;
  readonly track: CarriedTrack;
  readonly data: Buffer;
  /** When it came. */
  readonly at: number;
  /** When it takes effect. */
  readonly time: number;
}

const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 1024 * 1024;
/** An event that is so many seconds older than the media that it could go out with is of no use any more. */
const MAX_LATE_SECONDS = 10;

export function isCarried(track: DataTrack): track is CarriedTrack {
  return track.codec === 'ID3v2' || track.codec === 'SCTE35';
}

/** Events that wait for the part of a track that covers their time: the media may be seconds late, from an encoder. */
export class WaitingEvents {
  #waiting: TimedEvent[] = [];
  #bytes = 0;
  /** So many of those that wait belong to what comes next, whatever their time. */
  #released = 0;

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @returns false where another one was dropped for it */
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

  /** The times of what comes next have nothing to do with those of what waits. */
  release(): void {
    this.#released = this.#waiting.length;
  }

  /** Nothing comes that they could go out with. */
  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
    this.#released = 0;
  }

  /**
   * What belongs to media from one time to another, and what came too late for the media before. It takes effect no
   * earlier than that begins.
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
