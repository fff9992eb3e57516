import { MAX_PAYLOAD, PLAYOUT_DELAY_SIZE, RTP_HEADER_SIZE, writePlayoutDelay, writeRtpHeader } from './header.ts';

/** Receives the payloads of a packetizer, which fills `payload` from its start, then calls `send`. */
export interface PayloadSink {
  /** Room for `MAX_PAYLOAD` bytes, with undefined contents after `send`. */
  readonly payload: Buffer;
  /**
   * @param marker the packet ends its frame
   * @param later RTP time of the packet after that of its frame
   */
  send(size: number, marker: boolean, later?: number): void;
}

export interface RtpSenderOptions {
  readonly payloadType: number;
  readonly ssrc: number;
  /** First sequence number. */
  readonly sequence: number;
  /** Bounds of the receiver's playout delay, sent in each packet under the extension's id. */
  readonly playoutDelay?: { readonly id: number; readonly minMs: number; readonly maxMs: number };
  /**
   * Takes one packet, synchronously: the buffer is reused afterwards.
   */
  readonly output: (packet: Buffer) => void;
}

/** One RTP stream: numbers and counts its packets, all of them built in one and the same buffer. */
export class RtpSender implements PayloadSink {
  readonly payload: Buffer;
  readonly ssrc: number;
  /** RTP time of the packets sent next. */
  timestamp = 0;
  /** Packets and payload bytes so far, for sender reports. */
  packets = 0;
  octets = 0;
  readonly #packet: Buffer;
  readonly #start: number;
  readonly #output: (packet: Buffer) => void;
  readonly #fields: { payloadType: number; marker: boolean; sequence: number; timestamp: number; ssrc: number };

  constructor({ payloadType, ssrc, sequence, playoutDelay, output }: RtpSenderOptions) {
    this.#start = RTP_HEADER_SIZE + (playoutDelay === undefined ? 0 : PLAYOUT_DELAY_SIZE);
    this.#packet = Buffer.alloc(this.#start + MAX_PAYLOAD);
    if (playoutDelay !== undefined) {
      writePlayoutDelay(this.#packet, playoutDelay.id, playoutDelay.minMs, playoutDelay.maxMs);
    }
    this.payload = this.#packet.subarray(this.#start);
    this.ssrc = ssrc;
    this.#output = output;
    this.#fields = { payloadType, marker: false, sequence, timestamp: 0, ssrc };
  }

  send(size: number, marker: boolean, later = 0): void {
    const fields = this.#fields;
    fields.marker = marker;
    fields.timestamp = this.timestamp + later;
    writeRtpHeader(this.#packet, fields);
    fields.sequence = (fields.sequence + 1) & 0xffff;
    this.packets++;
    this.octets += size;
    this.#output(this.#packet.subarray(0, this.#start + size));
  }
}
