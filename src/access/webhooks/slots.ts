/** Runs so many at once, and lets so many wait for that, first come, first served. */
export class Slots {
  readonly #most: number;
  readonly #mostWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(most: number, mostWaiting: number) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  /** How many run or wait. */
  get size(): number {
    return this.#running + this.#waiting.length;
  }

  /** @param onFull makes the error of a call that cannot even wait */
  async run<T>(call: () => Promise<T>, onFull: () => Error): Promise<T> {
    if (this.#running < this.#most) this.#running++;
    else {
      if (this.#waiting.length >= this.#mostWaiting) throw onFull();
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
