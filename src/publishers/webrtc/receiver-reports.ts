import type { types } from 'mediasoup';
import type { Reception } from '../../quality/figures.ts';

/** Seconds between two readings. */
const INTERVAL = 10;

/** Reads the receiver reports of one viewer (RFC 3550 section 6.4.1) from the statistics of a consumer. */
export class ReceiverReports {
  readonly #consumer: types.Consumer;
  readonly #onReception: (reception: Reception) => void;
  #seconds = 0;
  #sent = 0;
  #lost = 0;

  /** @param onReception not called before the viewer has sent a report, nor while nothing is sent */
  constructor(consumer: types.Consumer, onReception: (reception: Reception) => void) {
    this.#consumer = consumer;
    this.#onReception = onReception;
  }

  /** Called once a second. */
  tick(): void {
    this.#seconds++;
    if (this.#seconds % INTERVAL === 0) void this.#read();
  }

  async #read(): Promise<void> {
    // fails only when the consumer is closed, which its owner handles
    const stats = await this.#consumer.getStats().catch(() => []);
    const sending = stats.find(({ type }) => type === 'outbound-rtp');
    if (sending === undefined || this.#consumer.closed) return;
    const { packetCount, packetsLost, roundTripTime = 0 } = sending;
    const sent = packetCount - this.#sent;
    const lost = packetsLost - this.#lost;
    this.#sent = packetCount;
    this.#lost = packetsLost;
    // reports say how long after the last sender report they were made: without that there is none
    if (sent <= 0 || roundTripTime <= 0) return;
    const lossRatio = Math.min(1, Math.max(0, lost / sent));
    this.#onReception({ lossRatio, roundTripSeconds: roundTripTime / 1000 });
  }
}
