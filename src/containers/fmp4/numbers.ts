const FIRST = 1024;

/** List of up to millions of 32-bit numbers. Negative ones become their two's complement. */
export class Numbers {
  #values = new Uint32Array(FIRST);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const more = new Uint32Array(this.#length * 2);
      more.set(this.#values);
      this.#values = more;
    }
    this.#values[this.#length++] = value;
  }

  /** @param index from the end, below 0; it must exist */
  at(index: number): number {
    return this.#values[this.#length + index] as number;
  }

  set(index: number, value: number): void {
    this.#values[this.#length + index] = value;
  }

  /** Big-endian. */
  bytes(): Buffer {
    const bytes = Buffer.allocUnsafe(this.#length * 4);
    for (let i = 0; i < this.#length; i++) bytes.writeUInt32BE(this.#values[i] as number, i * 4);
    return bytes;
  }
}
