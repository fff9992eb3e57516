/**
 * Reads the element that begins at `at`.
 * @returns its end; if that is beyond the data, the rest passes unread. Or, negative, the number of bytes needed for
 * another try, at least one more than there are
 */
export type ReadElement = (data: Buffer, at: number) => number;

/** Finds elements in bytes that come in chunks of any size; copies only those that lie in several. */
export class Elements {
  readonly #read: ReadElement;
  /** Beginning of an element, and the number of its bytes needed to continue. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #wanted = 0;
  /** Bytes still to skip. */
  #skip = 0;

  constructor(read: ReadElement) {
    this.#read = read;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#heldBytes === 0) {
        this.#readAll(rest);
        return;
      }
      const missing = Math.min(this.#wanted - this.#heldBytes, rest.length);
      this.#hold(rest.subarray(0, missing), this.#wanted);
      rest = rest.subarray(missing);
      if (this.#heldBytes < this.#wanted) return;
      const element = Buffer.concat(this.#held, this.#heldBytes);
      this.#held = [];
      this.#heldBytes = 0;
      this.#readAll(element);
    }
  }

  #readAll(data: Buffer): void {
    let at = Math.min(this.#skip, data.length);
    this.#skip -= at;
    while (at < data.length) {
      const end = this.#read(data, at);
      if (end < 0) {
        this.#hold(data.subarray(at), -end);
        return;
      }
      at = end;
    }
    this.#skip += at - data.length;
  }

  #hold(bytes: Buffer, wanted: number): void {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    this.#wanted = wanted;
  }
}
