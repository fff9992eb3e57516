import type { Track } from 'node-datachannel';
import { parseRtp } from './rtp.ts';

const INTERVAL_MS = 50;
const GENERIC_NACK = 0x81;
const TRANSPORT_FEEDBACK = 205;

/** Asks for what is missing of one stream again, and again until it comes (RFC 4585 section 6.2.1). */
export class Nacks {
  readonly #missing = new Set<number>();
  readonly #type: number;
  readonly #timer: NodeJS.Timeout;
  #ssrc: number | undefined;
  #highest = 0;

  /** @param type of payloads that are no retransmissions of another stream */
  constructor(track: Track, type: number) {
    this.#type = type;
    this.#timer = setInterval(() => {
      for (const number of this.#missing) if (track.isOpen()) track.sendMessageBinary(this.#ask(number));
    }, INTERVAL_MS);
  }

  take(packet: Buffer): void {
    const { payloadType, ssrc, sequence, payload } = parseRtp(packet);
    if (payloadType !== this.#type) {
      // RFC 4588 section 4
      this.#missing.delete(payload.readUInt16BE(0));
      return;
    }
    if (this.#ssrc === undefined) this.#highest = sequence;
    this.#ssrc = ssrc;
    this.#missing.delete(sequence);
    const ahead = (sequence - this.#highest) & 0xffff;
    if (ahead === 0 || ahead >= 0x8000) return;
    for (let at = 1; at < ahead; at++) this.#missing.add((this.#highest + at) & 0xffff);
    this.#highest = sequence;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #ask(number: number): Buffer {
    const packet = Buffer.alloc(16);
    packet.set([GENERIC_NACK, TRANSPORT_FEEDBACK, 0, 3]);
    packet.writeUInt32BE(1, 4);
    packet.writeUInt32BE(this.#ssrc as number, 8);
    packet.writeUInt16BE(number, 12);
    return packet;
  }
}
