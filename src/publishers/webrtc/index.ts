import type { FastifyPluginAsync } from 'fastify';
import type { CrossDomainsConfig, WebrtcBindConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { FindOutput } from '../../core/find-output.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Logger } from '../../log.ts';
import type { SessionNames } from '../../origins/session-names.ts';
import { WorkerPool } from '../../webrtc/worker-pool.ts';
import { ViewerDesk } from './desk.ts';
import { SignallingConnection } from './signalling.ts';
import { StreamPublisher } from './stream-publisher.ts';
import { Upgrades } from './upgrades.ts';
import { whepRoutes } from './whep.ts';
import type { WhepNeighbours } from './whep-neighbours.ts';

export interface WebrtcPublisherOptions {
  readonly registry: Registry;
  /** What is not on this node. */
  readonly find: FindOutput;
  readonly neighbours: WhepNeighbours;
  readonly sessionNames: SessionNames;
  readonly bind: WebrtcBindConfig;
  readonly log: Logger;
  /** What applications without CrossDomains of their own have; without it everybody may play from everywhere. */
  readonly crossDomains?: CrossDomainsConfig;
}

const TICK_MS = 1000;

/** Streams to browsers: WHEP and WebSocket signalling in front, mediasoup behind. */
export class WebrtcPublisher {
  /** WHEP under `/:app/:stream`, and the WebSocket upgrades of the server it is registered on. */
  readonly routes: FastifyPluginAsync;
  readonly pool: WorkerPool;
  readonly #registry: Registry;
  readonly #log: Logger;
  readonly #streams = new Map<OutputStream, StreamPublisher>();
  readonly #upgrades: Upgrades;
  readonly #timer = setInterval(() => this.#tick(), TICK_MS).unref();

  private constructor({ registry, find, neighbours, sessionNames, bind, log, crossDomains }: WebrtcPublisherOptions, pool: WorkerPool) {
    this.pool = pool;
    this.#registry = registry;
    this.#log = log;
    const { iceServers } = bind;
    const { defaultTransport } = bind.iceCandidates;
    const desk = new ViewerDesk({ registry, find, sessionNames, pool, defaultTransport, publishers: this.#streams });
    this.#upgrades = new Upgrades((socket, view) => {
      new SignallingConnection({ socket, view, desk, iceServers, log });
    });
    const whep = whepRoutes({ desk, neighbours, registry, iceServers, crossDomains });
    this.routes = async (fastify) => {
      this.#upgrades.attach(fastify.server);
      await fastify.register(whep);
    };
    registry.on('output', this.#onOutput);
  }

  /**
   * Starts the media workers and listens to the registry.
   * @throws Error when a worker cannot be started or a port not be opened
   */
  static async create(options: WebrtcPublisherOptions): Promise<WebrtcPublisher> {
    const log = options.log.child({ module: 'webrtc' });
    const pool = await WorkerPool.create(options.bind.iceCandidates, log);
    return new WebrtcPublisher({ ...options, log }, pool);
  }

  /** Disconnects all viewers and ends the workers. Idempotent. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#registry.off('output', this.#onOutput);
    for (const publisher of [...this.#streams.values()]) publisher.close('the server is going away');
    this.#streams.clear();
    this.#upgrades.close();
    this.pool.close();
  }

  readonly #onOutput = (stream: OutputStream, application: Application): void => {
    const config = application.config.publishers.webrtc;
    if (config === undefined || stream.closed || this.#streams.has(stream)) return;
    const publisher = new StreamPublisher(stream, application, config, this.#log);
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
