import { kilnError } from '../errors.ts';

/** Limit of requests that are answered at a time, and of those of one client. */
export class Slots {
  readonly #limit: number;
  readonly #limitOfOne: number;
  readonly #taken = new Map<string, number>();
  #count = 0;

  constructor(limit: number, limitOfOne: number) {
    this.#limit = limit;
    this.#limitOfOne = limitOfOne;
  }

  /** @param address of the client @returns its undo, to be called once @throws playbackBusy */
  enter(address: string): () => void {
    const own = this.#taken.get(address) ?? 0;
    if (this.#count >= this.#limit) throw kilnError('playbackBusy', this.#limit);
    if (own >= this.#limitOfOne) throw kilnError('playbackBusy', this.#limitOfOne);
    this.#count++;
    this.#taken.set(address, own + 1);
    return () => {
      this.#count--;
      const left = (this.#taken.get(address) ?? 1) - 1;
      if (left === 0) this.#taken.delete(address);
      else this.#taken.set(address, left);
    };
  }

  /** Takes a slot while something is done. @throws playbackBusy; what `work` throws */
  async during<T>(address: string, work: () => Promise<T>): Promise<T> {
    const leave = this.enter(address);
    try {
      return await work();
    } finally {
      leave();
    }
  }
}
