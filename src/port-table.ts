import type { FastifyPluginAsync } from 'fastify';
import type { HttpPorts } from './summary.ts';
import type { PlayablePublisher } from './web/streams.ts';

/** An HTTP port of viewers, and what is on it. */
export interface HttpEntry {
  readonly port: number;
  /** Speaks TLS. */
  readonly secure: boolean;
  readonly routes: FastifyPluginAsync[];
  readonly serves: PlayablePublisher[];
}

/** What shares an HTTP port, by port. */
export class PortTable {
  readonly #ports = new Map<number, HttpEntry>();

  /** Adds a publisher to its plain port, to its secure one, or to both. @param publisher of those that players play from */
  add({ port, tlsPort }: HttpPorts, routes: FastifyPluginAsync, publisher?: PlayablePublisher): void {
    if (port !== undefined) this.#add(port, false, routes, publisher);
    if (tlsPort !== undefined) this.#add(tlsPort, true, routes, publisher);
  }

  list(): HttpEntry[] {
    return [...this.#ports.values()];
  }

  #add(port: number, secure: boolean, routes: FastifyPluginAsync, publisher: PlayablePublisher | undefined): void {
    const entry = this.#ports.get(port) ?? { port, secure, routes: [], serves: [] };
    entry.routes.push(routes);
    if (publisher !== undefined) entry.serves.push(publisher);
    this.#ports.set(port, entry);
  }
}
