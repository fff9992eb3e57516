import { Histogram } from '../lib/histogram.ts';
import { WaitingLine } from './waiting-line.ts';

/** Purposes of readers that have a queue. */
export type QueueKind = 'channel' | 'encoder' | 'file' | 'flv' | 'ovt' | 'push' | 'relay' | 'rtmp' | 'rtsp' | 'srt';

/** Size beyond which a queue is congested. A queue counts packets, or bytes if its threshold is in bytes. */
export type QueueThreshold = { readonly seconds: number } | { readonly bytes: number };

/** Bounds of waiting times, in milliseconds: from half a one to a minute, each a quarter more than the one before. */
const WAIT_BOUNDS: readonly number[] = Array.from({ length: 54 }, (_, at) => 0.5 * 1.25 ** at);

let made = 0;

/**
 * Counts the packets between a stream and all its readers of one kind. While the readers keep up, nothing waits.
 */
export class Queue {
  /** Unique in this process. */
  readonly id = ++made;
  readonly kind: QueueKind;
  readonly threshold: QueueThreshold;
  /** On the monotonic clock, in milliseconds. */
  readonly createdAt = performance.now();
  came = 0;
  /** Packets dropped because a reader was too slow. */
  dropped = 0;
  #size = 0;
  #peak = 0;
  /** Packets that waited for readers that left. */
  #discarded = 0;
  #waited = 0;
  #changedAt = this.createdAt;
  /** Made when the first waits. */
  #waits: Histogram | undefined;
  readonly #lines = new Set<WaitingLine>();

  constructor(kind: QueueKind, threshold: QueueThreshold) {
    this.kind = kind;
    this.threshold = threshold;
  }

  get size(): number {
    return this.#size;
  }

  /** The most that has waited at once. */
  get peak(): number {
    return this.#peak;
  }

  /** All that readers have taken so far. */
  get taken(): number {
    return this.came - this.dropped - this.#discarded - this.#size;
  }

  /** For how long all that has come has waited so far, in milliseconds: two packets for a second each make 2000. */
  waited(now: number): number {
    return this.#waited + this.#size * (now - this.#changedAt);
  }

  /** Milliseconds that what has left so far had waited; what was taken at once is not in it. Undefined while nothing has waited. */
  get waits(): Histogram | undefined {
    return this.#waits;
  }

  /** Milliseconds that what waits now has waited. */
  get waiting(): Histogram {
    const now = performance.now();
    const histogram = new Histogram(WAIT_BOUNDS);
    for (const line of this.#lines) line.each(now, (milliseconds, count) => histogram.add(milliseconds, count));
    return histogram;
  }

  /** The line of one more reader. */
  join(): WaitingLine {
    const line = new WaitingLine();
    this.#lines.add(line);
    return line;
  }

  /**
   * More waits in a line, or with a negative number less: the oldest. A line that has left does not count.
   * @param isTaken whether they were taken, and not dropped
   */
  resize(line: WaitingLine, by: number, isTaken = true): void {
    if (by === 0 || !this.#lines.has(line)) return;
    const now = this.#resize(by);
    if (by > 0) return line.add(by, now);
    const waits = (this.#waits ??= new Histogram(WAIT_BOUNDS));
    line.take(-by, now, (milliseconds, count) => isTaken && waits.add(milliseconds, count));
  }

  /** A reader has left, with what waits in its line. Idempotent. */
  leave(line: WaitingLine): void {
    if (!this.#lines.delete(line)) return;
    this.#discarded += line.size;
    this.#resize(-line.size);
    line.clear();
  }

  /** @returns the time, in milliseconds */
  #resize(by: number): number {
    const now = performance.now();
    this.#waited = this.waited(now);
    this.#changedAt = now;
    this.#size += by;
    if (this.#size > this.#peak) this.#peak = this.#size;
    return now;
  }
}
