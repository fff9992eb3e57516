import type { IncomingMessage } from 'node:http';
import type { BlockList } from 'node:net';
import type { FastifyPluginAsync } from 'fastify';
import type { WebSocket } from 'ws';
import type { Access } from '../../access/access.ts';
import type { Redirects } from '../../access/redirects.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Logger } from '../../log/log.ts';
import { SignallingConnection } from './connection.ts';
import type { SignallingHandlers } from './handler.ts';
import { httpRoutes } from './http-routes.ts';
import { accessOf, directionOf, unavailable, type PeerRequest } from './request.ts';
import type { ResourceNeighbours } from './resource-neighbours.ts';
import { Resources } from './resources.ts';
import { Upgrades } from './upgrades.ts';

export interface SignallingOptions {
  readonly neighbours: ResourceNeighbours;
  /** Logs peers that are rejected before their admission. */
  readonly access: Pick<Access, 'report'>;
  readonly redirects: Redirects;
  /** Called with each request or connection of a peer, before its admission. */
  readonly onPeer?: () => void;
  readonly log: Logger;
  /** Networks whose `X-Forwarded-For` is trusted. */
  readonly proxies?: BlockList | undefined;
  /** For applications without CrossDomains of their own; default: every origin is allowed. */
  readonly crossDomains?: CrossDomainsConfig | undefined;
}

/** WHIP, WHEP and WebSocket signalling on any number of ports. */
export class Signalling {
  readonly #options: SignallingOptions;
  readonly #resources: Resources;
  readonly #upgrades: Upgrades;

  constructor(options: SignallingOptions) {
    this.#options = options;
    this.#resources = new Resources(options.neighbours);
    this.#upgrades = new Upgrades(options.proxies, options.access);
  }

  /**
   * Routes under `/:app/:stream` of one port, and the WebSocket upgrades of its HTTP server.
   * @param isOthers whether an upgrade is for another module
   */
  routes(handlers: SignallingHandlers, isOthers?: (request: IncomingMessage) => boolean): FastifyPluginAsync {
    const { access, redirects, onPeer, log, crossDomains } = this.#options;
    const http = httpRoutes({ handlers, resources: this.#resources, access, redirects, crossDomains });
    return async (fastify) => {
      if (onPeer !== undefined) fastify.addHook('onRequest', async () => onPeer());
      const onSocket = (socket: WebSocket, request: PeerRequest): void => {
        onPeer?.();
        const direction = directionOf(request.query);
        const handler = direction === 'incoming' ? handlers.publish : handlers.play;
        const onUnavailable = (): void => access.report(accessOf(request, direction), unavailable(direction));
        new SignallingConnection({ socket, request, handler, onUnavailable, log });
      };
      this.#upgrades.attach(fastify.server, onSocket, isOthers);
      await fastify.register(http);
    };
  }

  /** Closes the WebSocket connections. Idempotent. */
  close(): void {
    this.#upgrades.close();
  }
}
