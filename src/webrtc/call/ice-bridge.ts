import { randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4, isIPv6 } from 'node:net';
import { canonicalAddress } from '../../lib/address.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { isStun } from '../../protocols/stun/message.ts';
import { localAddresses, usableAddresses } from '../addresses.ts';
import { hostCandidates, type HostCandidate } from '../candidate.ts';
import { IceChecks, type IceAddress, type IceCredentials, type RemoteCandidate } from './ice-checks.ts';
import type { RemoteIce } from './remote-ice.ts';

export interface IceBridgeOptions {
  /** Says which addresses may be sent to. */
  readonly guard: OutboundGuard;
  /** The transport of a media worker, which is a lite agent on loopback. */
  readonly transport: IceCredentials & IceAddress;
  /** Called once, when the way through to the peer is open. */
  readonly onOpen: () => void;
  /** Called once, when the peer has gone after that. */
  readonly onLost: (reason: string) => void;
  /** Called with the bytes of each datagram of media or DTLS from the peer. */
  readonly onReceived: (bytes: number) => void;
}

const TICK_MS = 50;
/** Datagrams of the peer that wait until the media worker can take them. */
const MAX_EARLY = 32;
/** Bytes: holds the burst of a key frame. */
const SOCKET_BUFFER = 1024 * 1024;
const LOOPBACK = '127.0.0.1';

/**
 * Full ICE agent in front of a transport of a media worker, which is a lite one: mediasoup waits to be asked, and so would the server
 * that Kiln calls. It does the checks with both and carries their datagrams, which only they can read.
 */
export class IceBridge {
  readonly credentials: IceCredentials = {
    usernameFragment: randomBytes(6).toString('hex'),
    password: randomBytes(16).toString('hex'),
  };
  /** Bytes of datagrams to the peer. */
  sentBytes = 0;
  readonly candidates: readonly HostCandidate[];
  readonly #options: IceBridgeOptions;
  readonly #inner: Socket;
  readonly #outer: readonly Socket[];
  readonly #outerChecks: IceChecks;
  readonly #innerChecks: IceChecks;
  readonly #early: Buffer[] = [];
  #peer: IceAddress | undefined;
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** Opens sockets on all addresses of this machine. @throws Error of the system */
  static async open(options: IceBridgeOptions): Promise<IceBridge> {
    const sockets: Socket[] = [];
    try {
      const inner = await opened('udp4', LOOPBACK, sockets);
      inner.connect(options.transport.port, options.transport.address);
      await once(inner, 'connect');
      const outer = [await opened('udp4', undefined, sockets)];
      if (ownAddresses(isIPv6).length > 0) outer.push(await opened('udp6', undefined, sockets));
      return new IceBridge(options, inner, outer);
    } catch (error) {
      for (const socket of sockets) socket.close();
      throw error;
    }
  }

  private constructor(options: IceBridgeOptions, inner: Socket, outer: readonly Socket[]) {
    this.#options = options;
    this.#inner = inner;
    this.#outer = outer;
    this.candidates = hostCandidates(
      outer.map((socket) => {
        const { family, port } = socket.address();
        return { protocol: 'udp', ip: '', port, announced: ownAddresses(family === 'IPv6' ? isIPv6 : isIPv4) };
      }),
    );
    const local = this.credentials;
    this.#outerChecks = new IceChecks({
      local,
      send: (datagram, to) => this.#sendOut(datagram, to),
      onSelected: (peer) => this.#onSelected(peer),
      onPeer: (candidate) => void this.#permit(candidate),
    });
    this.#innerChecks = new IceChecks({
      local,
      send: (datagram) => inner.send(datagram, ignore),
      onSelected: () => this.#onInner(),
      onPeer: () => {},
    });
    this.#innerChecks.add({ ...options.transport, priority: 1 });
    inner.on('message', (datagram) => this.#fromWorker(datagram));
    for (const socket of outer)
      socket.on('message', (datagram, { address, port }) =>
        this.#fromPeer(datagram, { address: canonicalAddress(address), port }),
      );
    for (const socket of [inner, ...outer]) socket.on('error', ignore);
  }

  /** Address that is used for media; undefined until ICE has chosen it. */
  get peer(): IceAddress | undefined {
    return this.#peer;
  }

  /** Port that the peer is sent media from. */
  get localPort(): number | undefined {
    const [ipv4, ipv6] = this.#outer;
    const socket = this.#peer === undefined || isIPv4(this.#peer.address) ? ipv4 : ipv6;
    return this.#closed ? undefined : socket?.address().port;
  }

  /** Begins with the checks of the peer's addresses, those that the guard allows. @throws the guard's error when it allows none */
  async connect(remote: RemoteIce): Promise<void> {
    const refused = await Promise.all(remote.candidates.map((candidate) => this.#permit(candidate)));
    if (this.#closed) return;
    const objections = refused.filter((objection) => objection !== undefined);
    if (objections.length > 0 && objections.length === remote.candidates.length)
      throw this.#options.guard.error([...new Set(objections)].slice(0, 3).join('; '));
    this.#outerChecks.begin(remote);
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
    this.#tick();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    for (const socket of [this.#inner, ...this.#outer]) socket.close();
  }

  /** @returns why an address may not be asked */
  async #permit(candidate: RemoteCandidate): Promise<string | undefined> {
    const { address, port } = candidate;
    try {
      await this.#options.guard.addresses(address, port, 'udp');
      this.#outerChecks.add(candidate);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  #tick(): void {
    const now = performance.now();
    if (!this.#outerChecks.tick(now)) return this.#lose('the peer stopped answering');
    if (!this.#innerChecks.tick(now)) this.#lose('the media worker stopped answering');
  }

  #onSelected(peer: IceAddress): void {
    this.#peer = peer;
    const { usernameFragment, password } = this.#options.transport;
    this.#innerChecks.begin({ usernameFragment, password });
    this.#innerChecks.tick(performance.now());
  }

  #onInner(): void {
    this.#isOpen = true;
    for (const datagram of this.#early.splice(0)) this.#inner.send(datagram, ignore);
    this.#options.onOpen();
  }

  #fromPeer(datagram: Buffer, from: IceAddress): void {
    if (this.#closed) return;
    if (isStun(datagram)) return this.#outerChecks.receive(datagram, from, performance.now());
    if (!isSame(from, this.#peer) && !this.#outerChecks.isValid(from)) return;
    this.#options.onReceived(datagram.length);
    if (this.#isOpen) this.#inner.send(datagram, ignore);
    else if (this.#early.length < MAX_EARLY) this.#early.push(datagram);
  }

  #fromWorker(datagram: Buffer): void {
    if (this.#closed) return;
    if (isStun(datagram)) {
      this.#innerChecks.receive(datagram, this.#options.transport, performance.now());
    } else if (this.#peer !== undefined) {
      this.sentBytes += datagram.length;
      this.#sendOut(datagram, this.#peer);
    }
  }

  #sendOut(datagram: Buffer, { address, port }: IceAddress): void {
    const [ipv4, ipv6] = this.#outer;
    if (!this.#closed) (isIPv4(address) ? ipv4 : ipv6)?.send(datagram, port, address, ignore);
  }

  #lose(reason: string): void {
    this.close();
    this.#options.onLost(reason);
  }
}

function ignore(): void {}

async function opened(type: 'udp4' | 'udp6', address: string | undefined, all: Socket[]): Promise<Socket> {
  const socket = createSocket({
    type,
    ipv6Only: type === 'udp6',
    recvBufferSize: SOCKET_BUFFER,
    sendBufferSize: SOCKET_BUFFER,
  });
  all.push(socket);
  socket.bind({ port: 0, ...(address !== undefined && { address }), exclusive: true });
  await once(socket, 'listening');
  return socket;
}

function isSame(one: IceAddress, other: IceAddress | undefined): boolean {
  return one.address === other?.address && one.port === other.port;
}

function ownAddresses(isFamily: (address: string) => boolean): string[] {
  return usableAddresses(localAddresses(), isFamily, false);
}
