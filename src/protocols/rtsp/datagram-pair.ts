import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import { RtspError } from './error.ts';

/** Attempts to bind two consecutive ports: other programs may have either. */
const ATTEMPTS = 20;
const FIRST_PORT = 20_000;
const PORTS = 12_000;
/** Kernel buffer for a burst that this process has not read yet. */
const RECEIVE_BYTES = 1024 * 1024;
/** An empty RTP packet: it opens the way through NATs and firewalls, and servers ignore it. */
const PUNCH = Buffer.of(0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

/** Receives packets from the server. */
export interface DatagramSink {
  rtp(data: Buffer): void;
  rtcp(data: Buffer): void;
  /** A packet came from another address. */
  unexpectedSource(): void;
}

/** Two UDP ports, an even one for RTP and the next for RTCP, that accept packets of one server alone (RFC 3550 section 11). */
export class DatagramPair {
  /** Port of RTP. */
  readonly port: number;
  readonly #sockets: readonly [Socket, Socket];
  readonly #address: string;
  /** Actual sources of the server's packets: not always the announced ports. */
  readonly #heard: [RemoteInfo | undefined, RemoteInfo | undefined] = [undefined, undefined];
  #source: string | undefined;
  #serverPorts: readonly [number, number] | undefined;

  /**
   * @param local, remote addresses of this side and of the server
   * @throws RtspError when there is no pair of free ports
   */
  static async open(local: string, remote: string, sink: DatagramSink): Promise<DatagramPair> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const port = FIRST_PORT + 2 * Math.floor((Math.random() * PORTS) / 2);
      const rtp = await bound(local, port);
      if (rtp === undefined) continue;
      const rtcp = await bound(local, port + 1);
      if (rtcp !== undefined) return new DatagramPair([rtp, rtcp], port, remote, sink);
      rtp.close();
    }
    throw new RtspError('no two UDP ports are free');
  }

  private constructor(sockets: readonly [Socket, Socket], port: number, address: string, sink: DatagramSink) {
    this.#sockets = sockets;
    this.port = port;
    this.#address = address;
    const [rtp, rtcp] = sockets;
    rtp.on('message', (data, from) => (this.#isServer(0, from) ? sink.rtp(data) : sink.unexpectedSource()));
    rtcp.on('message', (data, from) => (this.#isServer(1, from) ? sink.rtcp(data) : sink.unexpectedSource()));
    // an error of one sent packet means nothing: the requests' connection shows whether the server is there
    for (const socket of sockets) socket.on('error', () => {});
  }

  /** Accepts packets from another address that the server has announced. Nothing is sent there. */
  hear(source: string | undefined): void {
    this.#source = source;
  }

  /** Sends to the server's ports, so that NATs and firewalls let its packets in. */
  punch(ports: readonly [number, number]): void {
    this.#serverPorts = ports;
    this.#sockets[0].send(PUNCH, ports[0], this.#address, () => {});
  }

  /** Sends to the server's RTCP port, if it is known. */
  report(data: Buffer): void {
    const heard = this.#heard[1];
    const port = heard?.address === this.#address ? heard.port : this.#serverPorts?.[1];
    if (port !== undefined) this.#sockets[1].send(data, port, this.#address, () => {});
  }

  /** Idempotent. */
  close(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners('message');
      try {
        socket.close();
      } catch {
        // closed already
      }
    }
  }

  #isServer(index: 0 | 1, from: RemoteInfo): boolean {
    if (from.address !== this.#address && from.address !== this.#source) return false;
    const { address, port } = (this.#heard[index] ??= from);
    return address === from.address && port === from.port;
  }
}

function bound(address: string, port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BYTES });
    socket.once('error', () => {
      socket.close();
      resolve(undefined);
    });
    socket.bind(port, address, () => {
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
}
