import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { until } from '../time/until.ts';

const HOST = '127.0.0.1';
const KEEP_ALIVE_MS = 100;
/** A link that is not heard for this long carries nothing more. */
const SILENT_MS = 1000;

interface Link {
  readonly socket: Socket;
  isLinked: boolean;
  isCut: boolean;
  heard: number;
  /** Data packets that were sent, and acknowledged. */
  sent: number;
  acknowledged: number;
}

/** A sender of SRTLA, with a link for each of some addresses of this machine; they take turns. */
export class SrtlaSender {
  readonly #server: number;
  /** Which SRT calls. */
  readonly #socket: Socket;
  readonly #links: Link[];
  #caller: number | undefined;
  #id: Buffer | undefined;
  #turn = 0;

  /** Closed after the test. */
  static async open(
    t: { teardown(action: () => void): void },
    server: number,
    addresses: readonly string[],
  ): Promise<SrtlaSender> {
    const sockets = await Promise.all([HOST, ...addresses].map((address) => bound(address)));
    const [socket, ...links] = sockets as [Socket, ...Socket[]];
    const sender = new SrtlaSender(server, socket, links);
    const timer = setInterval(() => sender.#keepAlive(), KEEP_ALIVE_MS);
    t.teardown(() => {
      clearInterval(timer);
      for (const one of sockets) one.close();
    });
    await sender.#register();
    return sender;
  }

  private constructor(server: number, socket: Socket, links: readonly Socket[]) {
    this.#server = server;
    this.#socket = socket;
    this.#links = links.map((one) => ({
      socket: one,
      isLinked: false,
      isCut: false,
      heard: 0,
      sent: 0,
      acknowledged: 0,
    }));
    socket.on('message', (data, { port }) => {
      this.#caller = port;
      this.#pass(data);
    });
    for (const link of this.#links) link.socket.on('message', (data) => this.#receive(link, data));
  }

  /** UDP port that an SRT caller calls. */
  get port(): number {
    return this.#socket.address().port;
  }

  /** Where links send from. */
  get ends(): { address: string; port: number }[] {
    return this.#links.map(({ socket }) => {
      const { address, port } = socket.address() as AddressInfo;
      return { address, port };
    });
  }

  get links(): readonly Readonly<Pick<Link, 'sent' | 'acknowledged'>>[] {
    return this.#links;
  }

  /** From here on a link loses all packets, which its sender notices later. */
  cut(index: number): void {
    const link = this.#links[index];
    if (link !== undefined) link.isCut = true;
  }

  async #register(): Promise<void> {
    const [first] = this.#links;
    if (first === undefined) return;
    this.#send(first, Buffer.concat([Buffer.from('9200', 'hex'), randomBytes(256)]));
    await until('all links are registered', () => this.#links.every(({ isLinked }) => isLinked));
  }

  #receive(link: Link, data: Buffer): void {
    if (link.isCut) return;
    link.heard = performance.now();
    const type = data.readUInt16BE(0);
    if (type === 0x9201) {
      this.#id = data;
      for (const one of this.#links) this.#send(one, this.#id);
    } else if (type === 0x9202) link.isLinked = true;
    else if (type === 0x9100) link.acknowledged += (data.length - 4) / 4;
    else if (type !== 0x9000 && this.#caller !== undefined) this.#socket.send(data, this.#caller, HOST);
  }

  #pass(data: Buffer): void {
    const now = performance.now();
    const working = this.#links.filter(({ heard }) => now - heard < SILENT_MS);
    const link = working[this.#turn++ % working.length];
    if (link === undefined) return;
    if (data.readUInt8(0) < 0x80) link.sent++;
    this.#send(link, data);
  }

  #keepAlive(): void {
    for (const link of this.#links) if (link.isLinked) this.#send(link, Buffer.from('9000', 'hex'));
  }

  #send(link: Link, data: Buffer): void {
    if (!link.isCut) link.socket.send(data, this.#server, HOST);
  }
}

async function bound(address: string): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
  socket.bind(0, address);
  await once(socket, 'listening');
  return socket;
}
