import type { SignallingHandler } from '../../webrtc/signalling/handler.ts';
import { PublishSessions, type PublishSessionsOptions } from './publish-sessions.ts';
import { PublishHandler } from './publish-handler.ts';

const TICK_MS = 1000;

/** Provider for browsers and encoders: receives by mediasoup, with WHIP and WebSocket signalling. */
export class WebrtcProvider {
  /** Handler of signalling for publishers. */
  readonly handler: SignallingHandler;
  readonly #publishers: PublishSessions;
  readonly #timer = setInterval(() => this.#tick(), TICK_MS).unref();

  constructor(options: PublishSessionsOptions) {
    this.#publishers = new PublishSessions({ ...options, log: options.log.child({ module: 'webrtc' }) });
    this.handler = new PublishHandler(options.registry, this.#publishers, options.bind);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#publishers.close();
  }

  #tick(): void {
    const now = Date.now();
    for (const session of this.#publishers.sessions) session.tick(now);
  }
}
