/** A viewer that receives nothing for this long is disconnected. */
const MAX_STALLED_MS = 30_000;

/** Notices a viewer that takes nothing of what waits for it. Times are of the monotonic clock, in milliseconds. */
export class StallWatch {
  #stalled: { readonly since: number; readonly unsent: number } | undefined;

  /** No more can be sent. @param unsent bytes that wait */
  full(unsent: number): void {
    this.#stalled ??= { since: performance.now(), unsent };
  }

  /** The viewer takes more. */
  taken(): void {
    this.#stalled = undefined;
  }

  /** Whether nothing was taken for too long. To be called now and then. @param unsent bytes that wait */
  isStalled(now: number, unsent: number): boolean {
    if (this.#stalled === undefined) return false;
    if (unsent >= this.#stalled.unsent) return now - this.#stalled.since > MAX_STALLED_MS;
    this.#stalled = { since: now, unsent };
    return false;
  }
}
