import type { Socket } from 'node:dgram';
import type { PortRange } from '../config/values.ts';
import { bindUdp } from '../core/bind-udp.ts';
import { canonicalAddress } from '../lib/address.ts';

/** Kernel buffer for the key frames of many players at once. */
const SEND_BYTES = 1024 * 1024;
/** Kernel buffer for what many publishers send while this process does something else. */
const RECEIVE_BYTES = 4 * 1024 * 1024;
/** Unsent bytes of a socket above which packets are dropped, as a network would do. */
const MAX_QUEUED_BYTES = 4 * 1024 * 1024;

interface Pair {
  readonly port: number;
  readonly rtp: Socket;
  readonly rtcp: Socket;
  lanes: number;
}

/** The client's side of one track: an address, and ports of RTP and RTCP. */
interface Client {
  readonly address: string;
  readonly ports: readonly [number, number];
  /** Called for everything that comes from there. */
  readonly received: Received;
}

type Received = (data: Buffer, isRtcp: boolean) => void;

/** UDP from and to one client's ports, for one track. */
export interface DatagramLane {
  /** Ports of this server. */
  readonly ports: readonly [number, number];
  rtp(data: Buffer): void;
  rtcp(data: Buffer): void;
  close(): void;
}

/** Ports that a kind of clients may use. */
export interface Datagrams {
  /** Gives a client the pair of ports with the fewest; undefined where another has its ports already. */
  add(client: Client): DatagramLane | undefined;
}

/** Pairs of UDP ports of one address, each shared by the tracks of many clients (RFC 3550 section 11). */
export class DatagramPorts {
  readonly #pairs: Pair[] = [];
  /** By socket, then by address and port of the client. */
  readonly #clients = new Map<Socket, Map<string, Received>>();

  /** @param host `*` for every IPv4 address @param ranges may overlap @throws ListenError */
  static async open(host: string, ranges: readonly PortRange[]): Promise<DatagramPorts> {
    const ports = new DatagramPorts();
    try {
      const firsts = new Set(
        ranges.flatMap(({ first, last }) =>
          Array.from({ length: Math.ceil((last - first) / 2) }, (_, index) => first + 2 * index),
        ),
      );
      for (const port of firsts) await ports.#open(host === '*' ? '0.0.0.0' : host, port);
    } catch (error) {
      ports.close();
      throw error;
    }
    return ports;
  }

  /** Ports of some ranges; undefined where there are none. */
  within(ranges: readonly PortRange[]): Datagrams | undefined {
    if (ranges.length === 0) return undefined;
    const isOf = ({ port }: Pair): boolean => ranges.some(({ first, last }) => port >= first && port < last);
    return { add: (client) => this.#add(this.#pairs.filter(isOf), client) };
  }

  #add(pairs: readonly Pair[], { address, ports: [rtpPort, rtcpPort], received }: Client): DatagramLane | undefined {
    const isTaken = (socket: Socket, port: number): boolean =>
      this.#clients.get(socket)?.has(keyOf(address, port)) === true;
    const free = pairs.filter(({ rtp, rtcp }) => !isTaken(rtp, rtpPort) && !isTaken(rtcp, rtcpPort));
    const [first, ...others] = free;
    if (first === undefined) return undefined;
    const pair = others.reduce((best, one) => (one.lanes < best.lanes ? one : best), first);
    pair.lanes++;
    const undo = [
      this.#listen(pair.rtp, address, rtpPort, received),
      this.#listen(pair.rtcp, address, rtcpPort, received),
    ];
    let closed = false;
    return {
      ports: [pair.port, pair.port + 1],
      rtp: (data) => send(pair.rtp, data, rtpPort, address),
      rtcp: (data) => send(pair.rtcp, data, rtcpPort, address),
      close: () => {
        if (closed) return;
        closed = true;
        pair.lanes--;
        for (const one of undo) one();
      },
    };
  }

  /** Idempotent. */
  close(): void {
    for (const { rtp, rtcp } of this.#pairs.splice(0)) {
      rtp.close();
      rtcp.close();
    }
    this.#clients.clear();
  }

  async #open(host: string, port: number): Promise<void> {
    const rtp = await bound(host, port);
    try {
      const rtcp = await bound(host, port + 1);
      this.#pairs.push({ port, rtp, rtcp, lanes: 0 });
      this.#receive(rtp, false);
      this.#receive(rtcp, true);
    } catch (error) {
      rtp.close();
      throw error;
    }
  }

  #receive(socket: Socket, isRtcp: boolean): void {
    const clients = new Map<string, Received>();
    this.#clients.set(socket, clients);
    socket.on('message', (data, { address, port }) =>
      clients.get(keyOf(canonicalAddress(address), port))?.(data, isRtcp),
    );
    // an error of one sent packet means nothing: the connection of the requests shows whether the client is there
    socket.on('error', () => {});
  }

  #listen(socket: Socket, address: string, port: number, received: Received): () => void {
    const clients = this.#clients.get(socket);
    const key = keyOf(address, port);
    clients?.set(key, received);
    return () => clients?.delete(key);
  }
}

function keyOf(address: string, port: number): string {
  return `${address} ${port}`;
}

function send(socket: Socket, data: Buffer, port: number, address: string): void {
  if (socket.getSendQueueSize() < MAX_QUEUED_BYTES) socket.send(data, port, address, () => {});
}

function bound(address: string, port: number): Promise<Socket> {
  return bindUdp({ address, port, sendBufferSize: SEND_BYTES, recvBufferSize: RECEIVE_BYTES });
}
