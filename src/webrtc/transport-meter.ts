import type { types } from 'mediasoup';

/** Counts the bytes of a transport in one direction, from statistics of its worker. */
export class TransportMeter {
  readonly #transport: types.WebRtcTransport;
  readonly #way: 'bytesReceived' | 'bytesSent';
  readonly #onBytes: (bytes: number, unknown: number) => void;
  #asking = false;
  #total = 0;
  #unknown = 0;

  /**
   * @param onBytes takes the bytes since its last call, and how many received ones belong to no producer; not called
   * after the transport is closed
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

  /** Requests statistics, unless a request is pending. */
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
      // fails only when the transport closes, which its owner handles
      () => {
        this.#asking = false;
      },
    );
  }
}
