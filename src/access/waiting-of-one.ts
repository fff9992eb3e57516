import { kilnError } from '../errors.ts';

/** How many viewers of one address may wait at once. */
const MAX_WAITING_OF_ONE = 256;

/** How many viewers of each address wait until there is something to play, for whatever streams. */
export class WaitingOfOne {
  readonly #of = new Map<string, number>();

  /**
   * Counts a viewer that begins to wait.
   * @param address its own, as reported by trusted proxies
   * @returns its undo, to be called once
   * @throws tooManyWaiting
   */
  enter(address: string): () => void {
    const waiting = this.#of.get(address) ?? 0;
    if (waiting >= MAX_WAITING_OF_ONE) throw kilnError('tooManyWaiting');
    this.#of.set(address, waiting + 1);
    return () => {
      const left = (this.#of.get(address) ?? 1) - 1;
      if (left === 0) this.#of.delete(address);
      else this.#of.set(address, left);
    };
  }
}
