const MIN_WINDOW_BYTES = 4096;

/** Window that this side proposes, and uses until the peer sets another, in bytes. */
export const WINDOW_BYTES = 2_500_000;

/** Decides when received bytes must be acknowledged (RTMP specification, sections 5.4.3 and 5.4.4). */
export class ReceiveWindow {
  #received = 0;
  #acknowledged = 0;
  #window = WINDOW_BYTES;

  /** Bytes so far, the handshake's included. */
  get received(): number {
    return this.#received;
  }

  add(bytes: number): void {
    this.#received += bytes;
  }

  /** Number for an acknowledgement that is due; undefined when none is. */
  acknowledge(): number | undefined {
    if (this.#received - this.#acknowledged < this.#window) return undefined;
    this.#acknowledged = this.#received;
    return this.#received % 2 ** 32;
  }

  /** Sets the peer's window: the number of bytes between acknowledgements. */
  resize(bytes: number): void {
    this.#window = Math.max(MIN_WINDOW_BYTES, bytes);
  }
}
