/** Purposes of readers that have a queue. */
export type QueueKind = 'channel' | 'encoder' | 'file' | 'flv' | 'ovt' | 'push' | 'relay' | 'rtmp' | 'rtsp' | 'srt';

/** Size beyond which a queue is congested. A queue counts packets, or bytes if its threshold is in bytes. */
export type QueueThreshold = { readonly seconds: number } | { readonly bytes: number };

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

  /** More waits, or with a negative number less. */
  resize(by: number): void {
    if (by === 0) return;
    const now = performance.now();
    this.#waited = this.waited(now);
    this.#changedAt = now;
    this.#size += by;
    if (this.#size > this.#peak) this.#peak = this.#size;
  }

  /** A reader has left while so much waited for it. */
  discard(waiting: number): void {
    this.#discarded += waiting;
    this.resize(-waiting);
  }
}
