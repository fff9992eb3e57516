/** The fallback program stays ready for this long after trouble of the item on the air. */
const READY_MS = 10_000;

/** Decides when the fallback program has to be ready: the item on the air may fail, or the stream has been silent. */
export class StreamTrouble {
  /** Monotonic milliseconds. */
  #until = -Infinity;
  /** Time with nothing on the air at the beginning of a step, without pauses of the process. */
  #silentMs = 0;

  /** Counts the time since the last step. */
  step(isSilent: boolean, passedMs: number): void {
    this.#silentMs = isSilent ? this.#silentMs + passedMs : 0;
  }

  /** Notes that the item on the air may fail. @param now monotonic milliseconds */
  note(now: number): void {
    this.#until = now + READY_MS;
  }

  /** Forgets the trouble of the item before: another one is on the air. */
  forget(): void {
    this.#until = -Infinity;
  }

  /** @param now monotonic milliseconds @param toleranceMs longest silence that the channel tolerates */
  isPresent(now: number, toleranceMs: number): boolean {
    return now < this.#until || this.#silentMs >= toleranceMs;
  }
}
