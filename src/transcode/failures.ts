/**
 * Tells of encodes that are not made: of each that never will be, and of all together that a process took with it
 * when it ended.
 */
export class Failures {
  readonly #report: (description: string) => void;
  /** What is interrupted, by reason. */
  readonly #interrupted = new Map<string, string[]>();

  constructor(report: (description: string) => void) {
    this.#report = report;
  }

  /**
   * @param what names the encode
   * @param final it is not tried again
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
