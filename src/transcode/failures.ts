/**
 * Reports encodes that fail: each final failure at once, and all interruptions with one reason together, such as those
 * of a process that ended.
 */
export class Failures {
  readonly #report: (description: string) => void;
  /** Interrupted encodes, by reason. */
  readonly #interrupted = new Map<string, string[]>();

  constructor(report: (description: string) => void) {
    this.#report = report;
  }

  /**
   * @param what name of the encode
   * @param final whether it is not tried again
   */
  add(what: string, reason: string, final: boolean): void {
    if (final) {
      this.#report(`${what} is not encoded: ${reason}`);
      return;
    }
    if (this.#interrupted.size === 0) queueMicrotask(() => this.#flush());
    this.#interrupted.set(reason, [...(this.#interrupted.get(reason) ?? []), what]);
  }

  #flush(): void {
    for (const [reason, all] of this.#interrupted)
      this.#report(`encoding of ${all.join(', ')} is interrupted: ${reason}`);
    this.#interrupted.clear();
  }
}
