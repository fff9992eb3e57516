import type { Access } from '../../access/access.ts';
import type { WebrtcBindConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Logger } from '../../log/log.ts';
import type { LiveProducers } from '../../webrtc/live-producers.ts';
import type { SignallingHandler } from '../../webrtc/signalling/handler.ts';
import type { WorkerPool } from '../../webrtc/worker-pool.ts';
import type { QualityReports } from '../../quality/quality-reports.ts';
import { PlaySessions } from './play-sessions.ts';
import { StreamPublisher } from './stream-publisher.ts';
import { PlayHandler } from './play-handler.ts';

export interface WebrtcPublisherOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly pool: WorkerPool;
  readonly producers: LiveProducers;
  readonly quality: QualityReports;
  readonly bind: WebrtcBindConfig;
  readonly log: Logger;
}

const TICK_MS = 1000;

/** Streams to browsers through mediasoup, with WHEP and WebSocket signalling at `handler`. */
export class WebrtcPublisher {
  readonly handler: SignallingHandler;
  readonly #registry: Registry;
  readonly #pool: WorkerPool;
  readonly #producers: LiveProducers;
  readonly #quality: QualityReports;
  readonly #log: Logger;
  readonly #streams = new Map<OutputStream, StreamPublisher>();
  readonly #timer = setInterval(() => this.#tick(), TICK_MS).unref();

  constructor({ registry, access, pool, producers, quality, bind, log }: WebrtcPublisherOptions) {
    this.#registry = registry;
    this.#pool = pool;
    this.#producers = producers;
    this.#quality = quality;
    this.#log = log.child({ module: 'webrtc' });
    const { iceCandidates } = bind;
    const sessions = new PlaySessions({ access, pool, iceCandidates, publishers: this.#streams });
    this.handler = new PlayHandler(registry, sessions, bind);
    registry.on('output', this.#onOutput);
  }

  /** Disconnects all viewers. Idempotent. */
  close(): void {
    clearInterval(this.#timer);
    this.#registry.off('output', this.#onOutput);
    for (const publisher of [...this.#streams.values()]) publisher.close('the server is closing');
    this.#streams.clear();
  }

  readonly #onOutput = (stream: OutputStream, application: Application): void => {
    const config = application.config.publishers.webrtc;
    if (config === undefined || stream.closed || this.#streams.has(stream)) return;
    // viewers may follow, and none is to wait for it
    void this.#pool.ready();
    const publisher = new StreamPublisher(stream, application, config, this.#producers, this.#quality, this.#log);
    this.#streams.set(stream, publisher);
    stream.once('close', (reason) => {
      this.#streams.delete(stream);
      publisher.close(reason);
    });
  };

  #tick(): void {
    const now = Date.now();
    for (const publisher of this.#streams.values()) publisher.tick(now);
  }
}
