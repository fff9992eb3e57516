import type { BlockList } from 'node:net';
import type { FastifyPluginAsync } from 'fastify';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Logger } from '../../log.ts';
import { SignallingConnection } from './connection.ts';
import type { Entrances } from './entrance.ts';
import { httpRoutes } from './http-routes.ts';
import { isIngest } from './request.ts';
import type { ResourceNeighbours } from './resource-neighbours.ts';
import { Resources } from './resources.ts';
import { Upgrades } from './upgrades.ts';

export interface SignallingOptions {
  readonly neighbours: ResourceNeighbours;
  readonly log: Logger;
  /** Networks whose `X-Forwarded-For` is believed. */
  readonly proxies?: BlockList | undefined;
  /** What applications without CrossDomains of their own have; without it everybody is let in from everywhere. */
  readonly crossDomains?: CrossDomainsConfig | undefined;
}

/** Where peers agree with this node on how media goes: WHIP, WHEP and the WebSocket signalling, on any number of ports. */
export class Signalling {
  readonly #options: SignallingOptions;
  readonly #resources: Resources;
  readonly #upgrades: Upgrades;

  constructor(options: SignallingOptions) {
    this.#options = options;
    this.#resources = new Resources(options.neighbours);
    this.#upgrades = new Upgrades(options.proxies);
  }

  /** Everything under `/:app/:stream` of one port, and the WebSocket upgrades of the server it is registered on. */
  routes(entrances: Entrances): FastifyPluginAsync {
    const { log, crossDomains } = this.#options;
    const http = httpRoutes({ entrances, resources: this.#resources, crossDomains });
    return async (fastify) => {
      this.#upgrades.attach(fastify.server, (socket, request) => {
        const entrance = isIngest(request) ? entrances.publish : entrances.play;
        new SignallingConnection({ socket, request, entrance, log });
      });
      await fastify.register(http);
    };
  }

  /** Closes the WebSocket connections. Idempotent. */
  close(): void {
    this.#upgrades.close();
  }
}
