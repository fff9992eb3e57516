const MIN_WINDOW_BYTES = 4096;

/** Bytes that this side proposes as a window, and acknowledges after until the other side says otherwise. */
export const WINDOW_BYTES = 2_500_000;

/** When received bytes have to be acknowledged (RTMP specification, sections 5.4.3 and 5.4.4). */
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

  /** The number that an acknowledgement that is due has to carry; undefined when none is. */
  acknowledge(): number | undefined {
    if (this.#received - this.#acknowledged < this.#window) return undefined;
    this.#acknowledged = this.#received;
    return this.#received % 2 ** 32;
  }

  /** The other side wants to hear of every so many bytes. */
  resize(bytes: number): void {
    this.#window = Math.max(MIN_WINDOW_BYTES, bytes);
  }
}
