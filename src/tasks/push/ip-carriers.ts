import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { PACKET_BYTES } from '../../containers/mpegts/stream-types.ts';
import { dial } from '../../protocols/outbound/dial.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { TcpSender } from '../../protocols/outbound/tcp-sender.ts';
import type { Carrier, OpenCarrier } from './ts-sink.ts';

/** Seven transport packets: as much as every network carries in one piece. */
const DATAGRAM_BYTES = 7 * PACKET_BYTES;
/** Datagrams that may wait for the system before the stream waits, too. */
const FULL = 800;
/** A key frame goes at once; the system may grant less (net.core.wmem_max). */
const SEND_BUFFER_BYTES = 4 * 1024 * 1024;

/** Carries MPEG-TS over UDP and TCP, as far as destinations may be reached. */
export function ipCarrier(guard: OutboundGuard): OpenCarrier {
  return async ({ scheme, host, port }, { connectMs, sendMs, writable, failed }) => {
    if (scheme === 'tcp') {
      const socket = await dial(guard, host, port, connectMs);
      socket.resume();
      return new TcpCarrier(new TcpSender(socket, sendMs, { writable, failed }));
    }
    const [address = host] = await guard.addresses(host, port, 'udp');
    const socket = createSocket({ type: isIPv6(address) ? 'udp6' : 'udp4', sendBufferSize: SEND_BUFFER_BYTES });
    // nobody has to be there yet
    socket.on('error', () => {});
    socket.connect(port, address);
    await once(socket, 'connect');
    return new UdpCarrier(socket, writable);
  };
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

/** Datagrams of seven transport packets, as they fill: the receiver tells nothing, and gets nothing twice. */
class UdpCarrier implements Carrier {
  /** Receivers would lose most of one. */
  readonly takesBursts = false;
  readonly #socket: Socket;
  readonly #writable: () => void;
  /** Of the datagram that is being filled. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Datagrams that the system has not taken yet. */
  #waiting = 0;
  #sentBytes = 0;
  #isFull = false;
  #isEnding = false;
  #closed = false;

  constructor(socket: Socket, writable: () => void) {
    this.#socket = socket;
    this.#writable = writable;
  }

  get sentBytes(): number {
    return this.#sentBytes;
  }

  send(packets: Buffer): boolean {
    for (let at = 0; at < packets.length && !this.#closed;) {
      const piece = packets.subarray(at, at + DATAGRAM_BYTES - this.#bytes);
      this.#pieces.push(piece);
      this.#bytes += piece.length;
      at += piece.length;
      if (this.#bytes === DATAGRAM_BYTES) this.#flush();
    }
    this.#isFull = this.#waiting >= FULL;
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

  readonly #onSent = (error: Error | null, bytes: number): void => {
    this.#waiting--;
    if (error === null) this.#sentBytes += bytes;
    if (this.#isEnding && this.#waiting === 0) return this.close();
    if (!this.#isFull || this.#waiting >= FULL / 2 || this.#closed) return;
    this.#isFull = false;
    this.#writable();
  };
}
