import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { hostInUrl } from '../lib/address.ts';
import { dial } from '../protocols/outbound/dial.ts';
import type { OutboundGuard } from '../protocols/outbound/guard.ts';
import { TcpSender } from '../protocols/outbound/tcp-sender.ts';
import type { SinkOptions } from './sink.ts';
import type { Carrier, OpenCarrier } from './ts-sink.ts';
import { readUdpOptions, type UdpOptions } from './udp-options.ts';

/** Bytes that may wait for the system before the stream is held back. */
const FULL_BYTES = 1024 * 1024;
/** Room for a key frame, which is sent at once; the system may grant less (net.core.wmem_max). */
const SEND_BUFFER_BYTES = 4 * 1024 * 1024;
const MAX_ADDRESSES = 4;
/** Errors that lose single datagrams: no listener yet, or no memory at the moment. */
const LOSSES: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOBUFS', 'ENOMEM']);

/** Carries MPEG-TS over UDP and TCP to destinations that the guard allows. */
export function ipCarrier(guard: OutboundGuard): OpenCarrier {
  return async ({ scheme, host, port, url }, options) => {
    if (scheme === 'tcp') {
      const { sendMs, writable, failed } = options;
      const socket = await dial(guard, host, port, options);
      socket.resume();
      return new TcpCarrier(new TcpSender(socket, sendMs, { writable, failed }));
    }
    const udp = readUdpOptions(url);
    const failures: string[] = [];
    for (const address of (await guard.addresses(host, port, 'udp')).slice(0, MAX_ADDRESSES)) {
      try {
        return new UdpCarrier(await openUdp(address, port, udp), udp.datagramBytes, options);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        failures.push(`the system does not send to ${hostInUrl(address)}:${port}: ${code ?? message}`);
      }
    }
    throw guard.error(failures.join('; '));
  };
}

/** @throws Error of the system */
async function openUdp(address: string, port: number, { ttl, localAddress }: UdpOptions): Promise<Socket> {
  const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', sendBufferSize: SEND_BUFFER_BYTES });
  try {
    socket.bind(localAddress === undefined ? {} : { address: localAddress });
    await once(socket, 'listening');
    if (localAddress !== undefined) socket.setMulticastInterface(localAddress);
    if (ttl !== undefined) {
      socket.setTTL(ttl);
      socket.setMulticastTTL(ttl);
    }
    socket.connect(port, address);
    await once(socket, 'connect');
  } catch (error) {
    socket.close();
    throw error;
  }
  // each send reports its own error
  socket.on('error', () => {});
  return socket;
}

class TcpCarrier implements Carrier {
  readonly takesBursts = true;
  readonly #sender: TcpSender;

  constructor(sender: TcpSender) {
    this.#sender = sender;
  }

  get sentBytes(): number {
    return this.#sender.sentBytes;
  }

  send(packets: Buffer): boolean {
    return this.#sender.send([packets]);
  }

  finish(): void {
    this.#sender.finish();
  }

  close(): void {
    this.#sender.close();
  }
}

/** Sends datagrams of whole transport packets as they fill. There are no answers and no retransmissions. */
class UdpCarrier implements Carrier {
  /** A burst would overflow receivers. */
  readonly takesBursts = false;
  readonly #socket: Socket;
  readonly #datagramBytes: number;
  readonly #full: number;
  readonly #options: SinkOptions;
  /** Pieces of the datagram that is being filled. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Datagrams that the system has not accepted yet. */
  #waiting = 0;
  #sentBytes = 0;
  #isFull = false;
  #isEnding = false;
  #closed = false;

  constructor(socket: Socket, datagramBytes: number, options: SinkOptions) {
    this.#socket = socket;
    this.#datagramBytes = datagramBytes;
    this.#full = Math.ceil(FULL_BYTES / datagramBytes);
    this.#options = options;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  send(packets: Buffer): boolean {
    for (let at = 0; at < packets.length && !this.#closed;) {
      const piece = packets.subarray(at, at + this.#datagramBytes - this.#bytes);
      this.#pieces.push(piece);
      this.#bytes += piece.length;
      at += piece.length;
      if (this.#bytes === this.#datagramBytes) this.#flush();
    }
    this.#isFull = this.#waiting >= this.#full;
    return !this.#isFull;
  }

  finish(): void {
    if (this.#bytes > 0 && !this.#closed) this.#flush();
    this.#isEnding = true;
    if (this.#waiting === 0) this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
  }

  #flush(): void {
    this.#waiting++;
    this.#socket.send(this.#pieces, this.#onSent);
    this.#pieces = [];
    this.#bytes = 0;
  }

  readonly #onSent = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    this.#waiting--;
    if (error === null) this.#sentBytes += bytes;
    else if (!this.#closed && !LOSSES.has(error.code ?? '')) return this.#fail(error);
    if (this.#isEnding && this.#waiting === 0) return this.close();
    if (!this.#isFull || this.#waiting >= this.#full / 2 || this.#closed) return;
    this.#isFull = false;
    this.#options.writable();
  };

  #fail({ code, message }: NodeJS.ErrnoException): void {
    this.close();
    if (!this.#isEnding) this.#options.failed(`the system does not send: ${code ?? message}`);
  }
}
