import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

export interface Link {
  /** What it carries towards the client; Infinity where it is free. */
  bitsPerSecond: number;
  /** What waits longer than this in front of it is lost. */
  queueMs: number;
  /** Every packet takes so long, and up to as much again by chance. */
  delayMs: number;
}

interface Waiting {
  readonly at: number;
  readonly packet: Buffer;
  readonly send: (packet: Buffer) => void;
}

const FREE: Link = { bitsPerSecond: Infinity, queueMs: 200, delayMs: 0 };

/**
 * A narrow link on loopback, without any rights: UDP to `port` goes on to a server and comes back through a queue
 * that empties at a given rate. Chance is seeded.
 */
export class Throttle {
  readonly link: Link = { ...FREE };
  /** Packets that the queue had no room for. */
  lost = 0;
  readonly #socket: Socket;
  readonly #server: number;
  readonly #upstreams = new Map<string, Socket>();
  #queue: Waiting[] = [];
  /** When the link has carried all that was put on it. */
  #free = 0;
  #timer: NodeJS.Timeout | undefined;
  #seed: number;

  private constructor(socket: Socket, server: number, seed: number) {
    this.#socket = socket;
    this.#server = server;
    this.#seed = seed;
    socket.on('message', (packet, { address, port }) => this.#upstream(address, port).send(packet, this.#server, '127.0.0.1'));
  }

  /** @param server port on loopback that it leads to */
  static async open(server: number, seed = 1): Promise<Throttle> {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new Throttle(socket, server, seed);
  }

  get port(): number {
    return (this.#socket.address() as AddressInfo).port;
  }

  /** A description of the server, as one of what is behind the link. */
  rewrite(sdp: string): string {
    return sdp.replaceAll(`127.0.0.1 ${this.#server} `, `127.0.0.1 ${this.port} `);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#queue = [];
    this.#socket.close();
    for (const upstream of this.#upstreams.values()) upstream.close();
    this.#upstreams.clear();
  }

  #upstream(address: string, port: number): Socket {
    const key = `${address}:${port}`;
    const known = this.#upstreams.get(key);
    if (known !== undefined) return known;
    const upstream = createSocket('udp4');
    const send = (packet: Buffer) => this.#socket.send(packet, port, address);
    upstream.on('message', (packet) => this.#put(packet, send));
    this.#upstreams.set(key, upstream);
    return upstream;
  }

  #put(packet: Buffer, send: (packet: Buffer) => void): void {
    const now = performance.now();
    const { bitsPerSecond, queueMs, delayMs } = this.link;
    const begins = Math.max(now, this.#free);
    if (begins - now > queueMs) {
      this.lost++;
      return;
    }
    this.#free = begins + ((packet.length + 28) * 8000) / bitsPerSecond;
    this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) >>> 0;
    // packets keep their order
    const at = Math.max(this.#free + delayMs * (1 + this.#seed / 2 ** 32), this.#queue.at(-1)?.at ?? 0);
    this.#queue.push({ at, packet, send });
    this.#drain();
  }

  readonly #drain = (): void => {
    clearTimeout(this.#timer);
    const now = performance.now();
    while ((this.#queue[0]?.at ?? Infinity) <= now + 0.5) {
      const { packet, send } = this.#queue.shift() as Waiting;
      send(packet);
    }
    const [next] = this.#queue;
    if (next !== undefined) this.#timer = setTimeout(this.#drain, next.at - now);
  };
}
