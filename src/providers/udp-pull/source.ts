import type { Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Connection } from '../../core/source.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { within } from '../../lib/within.ts';
import { Datagrams, holdsTransportStream } from '../mpegts-udp/datagrams.ts';
import { bindUdp, joinGroup } from '../mpegts-udp/udp-socket.ts';
import { PullError } from '../pull/error.ts';
import { PulledTs } from '../pull/pulled-ts.ts';
import { FIRST_MEDIA_MS, type OpenSource, type SourceOptions } from '../pull/source.ts';
import { parseUdpUrl, type UdpUrl } from './url.ts';

/** Datagrams that are held until the stream plays, and their bytes at the usual size. */
const MAX_HELD = 1024;
const MAX_HELD_BYTES = MAX_HELD * 1500;
/** Silence after which another sender may take over. */
const TAKE_OVER_MS = 1500;

interface Sender {
  readonly address: string;
  readonly port: number;
}

/**
 * Receives MPEG-TS, plain or in RTP (RFC 2250), on a UDP port of this machine or of a multicast group, from senders that the guard
 * allows.
 */
export function udpSource(guard: OutboundGuard): OpenSource {
  return async (target, options) => {
    const url = parseUdpUrl(target);
    if (typeof url === 'string') throw new PullError(`not a URL of UDP: ${shownUrl(target)} (${url})`);
    const { signal } = options;
    if (url.isGroup) await guard.addresses(url.address, url.port, 'udp', signal);
    const receiver = new UdpReceiver(await opened(url), url, guard);
    const first = await within(FIRST_MEDIA_MS, receiver.first, signal);
    if (first === undefined) {
      receiver.close();
      if (signal.aborted) throw guard.unwanted();
      throw new PullError(`nothing came to UDP port ${url.port} within ${FIRST_MEDIA_MS / 1000} s that is MPEG-TS`);
    }
    return receiver.source(first, options);
  };
}

async function opened({ address, port, isGroup, localAddress }: UdpUrl): Promise<Socket> {
  const every = isIPv6(address) ? '::' : '*';
  try {
    return isGroup ? await joinGroup([localAddress ?? every], { group: address, port }) : await bindUdp(address, port);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'EADDRINUSE' ? 'it is in use' : code === 'EADDRNOTAVAIL' ? 'this machine has no such address' : message;
    throw new PullError(`UDP port ${port} of ${address} cannot be opened: ${why}`);
  }
}

/** Datagrams of one sender at a time. */
class UdpReceiver {
  /** Resolves with the sender of the first datagram of a transport stream. */
  readonly first: Promise<Sender>;
  readonly #socket: Socket;
  readonly #port: number;
  readonly #guard: OutboundGuard;
  readonly #start = Promise.withResolvers<Sender>();
  #sender: Sender | undefined;
  #heardAt = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #take: ((datagram: Buffer) => void) | undefined;
  #onOther: (() => void) | undefined;

  constructor(socket: Socket, { port }: UdpUrl, guard: OutboundGuard) {
    this.#socket = socket;
    this.#port = port;
    this.#guard = guard;
    this.first = this.#start.promise;
    socket.on('message', (datagram, sender) => this.#receive(datagram, sender));
    // such as of an interface that is gone: silence follows
    socket.on('error', () => {});
  }

  source({ address: remoteAddress, port: remotePort }: Sender, options: SourceOptions): PulledTs {
    const connection: Connection = {
      ...{ transport: 'UDP', protocol: 'UDP', localPort: this.#port },
      ...{ remoteAddress, remotePort },
    };
    const datagrams = new Datagrams(true, {
      data: (bytes) => source.push(bytes),
      lost: () => source.gap('datagrams were lost in the network'),
      fault: (reason) => source.fault(reason),
    });
    const source = new PulledTs(
      {
        connection,
        read: () => {
          this.#onOther = () => source.gap('another sender took over the stream');
          this.#take = (datagram) => datagrams.push(datagram);
          for (const datagram of this.#held.splice(0)) datagrams.push(datagram);
        },
        close: () => {
          datagrams.close();
          this.close();
        },
      },
      options,
    );
    return source;
  }

  close(): void {
    this.#take = () => {};
    this.#held = [];
    this.#socket.close();
  }

  #receive(datagram: Buffer, { address, port }: Sender): void {
    const now = performance.now();
    const isSame = this.#sender?.address === address && this.#sender.port === port;
    if (!isSame) {
      if (this.#sender !== undefined && now - this.#heardAt < TAKE_OVER_MS) return;
      if (!this.#guard.permits(address, 'udp') || !holdsTransportStream(datagram)) return;
      if (this.#sender !== undefined) this.#onOther?.();
      this.#sender = { address, port };
      this.#start.resolve(this.#sender);
    }
    this.#heardAt = now;
    if (this.#take !== undefined) return this.#take(datagram);
    this.#heldBytes += datagram.length;
    this.#held.push(datagram);
    while (this.#held.length > MAX_HELD || this.#heldBytes > MAX_HELD_BYTES)
      this.#heldBytes -= this.#held.shift()?.length ?? 0;
  }
}
