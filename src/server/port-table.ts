import type { FastifyPluginAsync } from 'fastify';
import type { Door } from './doors.ts';
import type { ServedHere } from '../web/streams.ts';
import type { Entrances } from '../webrtc/signalling/entrance.ts';

/** An HTTP port of clients, and what is on it. */
export interface HttpEntry {
  readonly port: number;
  /** Speaks TLS. */
  readonly secure: boolean;
  readonly routes: FastifyPluginAsync[];
  readonly serves: ServedHere[];
  entrances: Entrances;
}

/** What shares an HTTP port, by port. */
export class PortTable {
  readonly #ports = new Map<number, HttpEntry>();

  /** Adds what is on a plain port, on a secure one, or on both. */
  add(http: NonNullable<Door['http']>): void {
    const { port, tlsPort } = http.ports;
    if (port !== undefined) this.#add(port, false, http);
    if (tlsPort !== undefined) this.#add(tlsPort, true, http);
  }

  list(): HttpEntry[] {
    return [...this.#ports.values()];
  }

  #add(port: number, secure: boolean, { routes, entrances, serves }: NonNullable<Door['http']>): void {
    const entry = this.#ports.get(port) ?? { port, secure, routes: [], serves: [], entrances: {} };
    if (routes !== undefined) entry.routes.push(routes);
    if (serves !== undefined) entry.serves.push(serves);
    entry.entrances = { ...entry.entrances, ...entrances };
    this.#ports.set(port, entry);
  }
}
