import type { Entrance } from '../../webrtc/signalling/entrance.ts';
import { IngestDesk, type IngestDeskOptions } from './desk.ts';
import { PublisherEntrance } from './publisher-entrance.ts';

const TICK_MS = 1000;

/** Streams from browsers and encoders: mediasoup behind, WHIP and WebSocket signalling in front, at `entrance`. */
export class WebrtcProvider {
  /** Where publishers come in. */
  readonly entrance: Entrance;
  readonly #desk: IngestDesk;
  readonly #timer = setInterval(() => this.#tick(), TICK_MS).unref();

  constructor(options: IngestDeskOptions) {
    this.#desk = new IngestDesk({ ...options, log: options.log.child({ module: 'webrtc' }) });
    this.entrance = new PublisherEntrance(options.registry, this.#desk, options.bind);
  }

  /** Ends all sessions and takes no more. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#desk.close();
  }

  #tick(): void {
    const now = Date.now();
    for (const session of this.#desk.sessions) session.tick(now);
  }
}
