import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import type { Listener } from './listeners.ts';
import type { MediaHandler } from '../web/pages.ts';
import type { ServedHere } from '../web/streams.ts';
import type { SignallingHandlers } from '../webrtc/signalling/handler.ts';

export interface HttpEntry {
  readonly port: number;
  readonly secure: boolean;
  readonly routes: FastifyPluginAsync[];
  readonly serves: ServedHere[];
  handlers: SignallingHandlers;
  media?: MediaHandler;
  takesSocket?: (request: IncomingMessage) => boolean;
}

/** Routes and signalling of HTTP ports, by port. */
export class PortTable {
  readonly #ports = new Map<number, HttpEntry>();

  /** Adds content to a plain port, a secure one, or both. */
  add(http: NonNullable<Listener['http']>): void {
    const { port, tlsPort } = http.ports;
    if (port !== undefined) this.#add(port, false, http);
    if (tlsPort !== undefined) this.#add(tlsPort, true, http);
  }

  list(): HttpEntry[] {
    return [...this.#ports.values()];
  }

  #add(
    port: number,
    secure: boolean,
    { routes, media, takesSocket, handlers, serves }: NonNullable<Listener['http']>,
  ): void {
    const entry = this.#ports.get(port) ?? { port, secure, routes: [], serves: [], handlers: {} };
    if (routes !== undefined) entry.routes.push(routes);
    if (serves !== undefined) entry.serves.push(serves);
    if (media !== undefined) entry.media = media;
    if (takesSocket !== undefined) entry.takesSocket = takesSocket;
    entry.handlers = { ...entry.handlers, ...handlers };
    this.#ports.set(port, entry);
  }
}
