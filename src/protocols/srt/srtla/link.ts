import type { SrtAddress } from '../address.ts';
import { ACKED, writeAck } from './packet.ts';

/** One network link of a sender. */
export class SrtlaLink {
  readonly peer: SrtAddress;
  packets = 0;
  bytes = 0;
  /** When it was heard last. */
  heard: number;
  readonly #send: (data: Buffer) => void;
  /** Bytes that came from there and were not answered yet. */
  #credit = 0;
  #unacked: number[] = [];

  constructor(peer: SrtAddress, send: (data: Buffer) => void, now: number) {
    this.peer = peer;
    this.heard = now;
    this.#send = send;
  }

  received(bytes: number, now: number): void {
    this.heard = now;
    this.bytes += bytes;
    this.#credit += bytes;
  }

  /** Counts a data packet, and acknowledges when there are enough of them. */
  data(sequence: number): void {
    this.packets++;
    if (this.#unacked.push(sequence) < ACKED) return;
    this.send(writeAck(this.#unacked));
    this.#unacked = [];
  }

  /**
   * Sends as long as it is not more than what came from there: an address may be that of a client who never asked for a
   * stream's feedback. Links that carry media earn many times of what they are sent.
   */
  send(data: Buffer): void {
    if (data.length > this.#credit) return;
    this.#credit -= data.length;
    this.#send(data);
  }
}
