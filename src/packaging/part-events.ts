import type { DataCodec, DataTrack } from '../core/track.ts';

/** An event with its place in the stream; times are media time in seconds. */
export interface TimedEvent {
  /** Unique in the stream, 32 bits; the same on every track that carries the event. */
  readonly id: number;
  readonly track: DataTrack;
  readonly data: Buffer;
  /** Time of arrival. */
  readonly at: number;
  /** Time at which it takes effect. */
  readonly time: number;
}

/** Events of one codec that wait, and their bytes: those of ten seconds at the rate that a publisher may send. */
const MAX_WAITING = 1000;
const MAX_WAITING_BYTES = 1024 * 1024;
/** Events older than the media by more than this are dropped. */
const MAX_LATE_SECONDS = 10;

/** Holds events until the part that covers their time: media from an encoder may be seconds late. */
export class WaitingEvents {
  #waiting: TimedEvent[] = [];
  /** How many of each codec wait, and their bytes: sensors that send much do not displace splices. */
  #sizes = new Map<DataCodec, { count: number; bytes: number }>();
  /** How many of the first events go out with the next part, whatever their time. */
  #released = 0;

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** @returns false if an older event of its codec was dropped for it */
  add(event: TimedEvent): boolean {
    const { codec } = event.track;
    this.#waiting.push(event);
    const size = this.#count(event);
    let fits = true;
    while (size.count > MAX_WAITING || size.bytes > MAX_WAITING_BYTES) {
      const at = this.#waiting.findIndex(({ track }) => track.codec === codec);
      const [oldest] = this.#waiting.splice(at, 1) as [TimedEvent];
      size.count--;
      size.bytes -= oldest.data.length;
      if (at < this.#released) this.#released--;
      fits = false;
    }
    return fits;
  }

  #count({ track, data }: TimedEvent): { count: number; bytes: number } {
    const size = this.#sizes.get(track.codec) ?? { count: 0, bytes: 0 };
    this.#sizes.set(track.codec, size);
    size.count++;
    size.bytes += data.length;
    return size;
  }

  /** Sends all waiting events with the next part: its timeline is a new one. */
  release(): void {
    this.#released = this.#waiting.length;
  }

  /** Drops all events: no media follows. */
  clear(): void {
    this.#waiting = [];
    this.#sizes.clear();
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
    this.#sizes.clear();
    for (const event of left) this.#count(event);
    this.#released = 0;
    return taken;
  }
}
