import type { types } from 'mediasoup';

/** Counts what a transport carries one way, as its worker tells when it is asked. */
export class TransportMeter {
  readonly #transport: types.WebRtcTransport;
  readonly #way: 'bytesReceived' | 'bytesSent';
  readonly #onBytes: (bytes: number, unknown: number) => void;
  #asking = false;
  #total = 0;
  #unknown = 0;

  /**
   * @param onBytes takes what has come or gone since it was called last, and how much of what came is of no producer; not called any
   * more when the transport is closed
   */
  constructor(
    transport: types.WebRtcTransport,
    way: 'bytesReceived' | 'bytesSent',
    onBytes: (bytes: number, unknown: number) => void,
  ) {
    this.#transport = transport;
    this.#way = way;
    this.#onBytes = onBytes;
  }

  /** Asks, unless an answer is still to come. */
  poll(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#transport.getStats().then(
      ([stats]) => {
        this.#asking = false;
        if (stats === undefined || this.#transport.closed) return;
        const bytes = stats[this.#way] - this.#total;
        this.#total += bytes;
        const unknown = stats.bytesReceived - stats.rtpBytesReceived - stats.rtxBytesReceived;
        const more = unknown - this.#unknown;
        this.#unknown = unknown;
        this.#onBytes(bytes, more);
      },
      // it fails only with the transport, whose owner ends with it
      () => {
        this.#asking = false;
      },
    );
  }
}
