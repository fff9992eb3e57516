import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { seeded } from '../../unit/codecs/vectors.ts';

export type Direction = 'toServer' | 'toClient';

/** Decides of a datagram: after how many milliseconds each copy of it goes on; none where it is lost. */
export type Way = (datagram: Buffer) => readonly number[];

/** Makes the two ways of a client. @param client how many came before it */
export type WayMaker = (client: number, direction: Direction) => Way;

export interface Faults {
  readonly seed: number;
  /** Share of datagrams that get lost, 0 to 1. */
  readonly loss?: number;
  /** Share of those that come through which come twice. */
  readonly duplication?: number;
  /** What every datagram takes at least. */
  readonly delayMs?: number;
  /** What it takes beyond that at most: each as long as chance has it, so that they overtake each other. */
  readonly jitterMs?: number;
}

/** What went one way, of all clients. */
export interface WayCounts {
  received: number;
  lost: number;
  sent: number;
  /** Of those sent, the ones that had been sent before. */
  duplicates: number;
  /** Of those sent, the ones behind which a later one was sent already. */
  overtaken: number;
}

interface Flow {
  readonly way: Way;
  readonly counts: WayCounts;
  readonly send: (datagram: Buffer) => void;
  /** Number of the next datagram, and of the latest one that was sent. */
  next: number;
  latest: number;
}

interface Waiting {
  readonly due: number;
  readonly datagram: Buffer;
  readonly flow: Flow;
  readonly number: number;
}

interface Client {
  readonly upstream: Socket;
  readonly flow: Flow;
}

const HOST = '127.0.0.1';
const UNTIL_DUE_MS = 0.5;

/**
 * Ways that lose, delay, reorder and double by a seed. The n-th datagram that the m-th client sends, or is sent,
 * always meets the same fate, whatever else passes.
 */
export function faulty({ seed, loss = 0, duplication = 0, delayMs = 0, jitterMs = 0 }: Faults): WayMaker {
  return (client, direction) => {
    const chance = seeded(seed * 7919 + client * 2 + (direction === 'toServer' ? 0 : 1));
    const delay = () => delayMs + chance() * jitterMs;
    return () => {
      // as many choices for one datagram as for another
      const [isLost, isDouble, first, second] = [chance() < loss, chance() < duplication, delay(), delay()];
      if (isLost) return [];
      return isDouble ? [first, second] : [first];
    };
  };
}

/** A bad way to a UDP port of this machine, and back, for any number of clients. */
export class UdpRelay {
  readonly counts: Readonly<Record<Direction, WayCounts>> = { toServer: none(), toClient: none() };
  /** The port that it leads to. */
  readonly server: number;
  readonly #socket: Socket;
  readonly #ways: WayMaker;
  readonly #clients = new Map<string, Client>();
  /** In the order in which they leave. */
  readonly #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(socket: Socket, server: number, ways: WayMaker) {
    this.#socket = socket;
    this.server = server;
    this.#ways = ways;
    socket.on('message', (datagram, { address, port }) => this.#put(datagram, this.#client(address, port).flow));
  }

  static async open(server: number, ways: WayMaker): Promise<UdpRelay> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
    socket.bind(0, HOST);
    await once(socket, 'listening');
    return new UdpRelay(socket, server, ways);
  }

  get port(): number {
    return (this.#socket.address() as AddressInfo).port;
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Drops what is under way. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
    this.#socket.close();
    for (const { upstream } of this.#clients.values()) upstream.close();
  }

  #client(address: string, port: number): Client {
    const key = `${address}:${port}`;
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const number = this.#clients.size;
    const upstream = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
    const flow = this.#flow(number, 'toServer', (datagram) => upstream.send(datagram, this.server, HOST));
    const back = this.#flow(number, 'toClient', (datagram) => this.#socket.send(datagram, port, address));
    upstream.on('message', (datagram) => this.#put(datagram, back));
    const client = { upstream, flow };
    this.#clients.set(key, client);
    return client;
  }

  #flow(client: number, direction: Direction, send: Flow['send']): Flow {
    return { way: this.#ways(client, direction), counts: this.counts[direction], send, next: 0, latest: -1 };
  }

  #put(datagram: Buffer, flow: Flow): void {
    const now = performance.now();
    const number = flow.next++;
    const delays = flow.way(datagram);
    flow.counts.received++;
    if (delays.length === 0) flow.counts.lost++;
    else flow.counts.duplicates += delays.length - 1;
    for (const delay of delays) this.#insert({ due: now + delay, datagram, flow, number });
    this.#send();
  }

  #insert(entry: Waiting): void {
    const at = this.#waiting.findLastIndex(({ due }) => due <= entry.due);
    this.#waiting.splice(at + 1, 0, entry);
  }

  readonly #send = (): void => {
    clearTimeout(this.#timer);
    const now = performance.now();
    while ((this.#waiting[0]?.due ?? Infinity) <= now + UNTIL_DUE_MS) {
      const { datagram, flow, number } = this.#waiting.shift() as Waiting;
      flow.counts.sent++;
      if (number < flow.latest) flow.counts.overtaken++;
      else flow.latest = number;
      flow.send(datagram);
    }
    const [next] = this.#waiting;
    if (next !== undefined) this.#timer = setTimeout(this.#send, next.due - now);
  };
}

function none(): WayCounts {
  return { received: 0, lost: 0, sent: 0, duplicates: 0, overtaken: 0 };
}
