import { OBU, obus, type Obu } from '../../codecs/av1.ts';
import type { Packet } from '../../core/packet.ts';
import type { VideoTrack } from '../../core/track.ts';
import { MAX_PAYLOAD } from './header.ts';
import type { PayloadSink } from './sender.ts';

/** Bits of the aggregation header (RTP Payload Format For AV1, section 4.4). */
const CONTINUES = 0x80;
const CONTINUED = 0x40;
const NEW_SEQUENCE = 0x08;
const HAS_SIZE = 0x02;
/** av1C: four bytes in front of its OBUs. */
const AV1C_HEADER = 4;
/** Below this an OBU starts in the next packet. */
const LEAST_FRAGMENT = 16;

/**
 * AV1 temporal units to RTP payloads: OBUs without their size fields, each element behind its length.
 * A key unit without a sequence header gets the one of the track's configuration.
 */
export class Av1Packetizer {
  #at = 1;
  #continues = false;
  #newSequence = false;

  /** @throws BitstreamError on malformed OBUs */
  packetize({ data, key, track }: Packet, sink: PayloadSink): void {
    const units = [...obus(data)].filter(isSent);
    if (key && !units.some(({ type }) => type === OBU.sequenceHeader)) {
      const { config } = track as VideoTrack;
      if (config !== undefined) units.unshift(...obus(config.subarray(AV1C_HEADER)));
    }
    this.#at = 1;
    this.#continues = false;
    this.#newSequence = key !== false;
    for (const unit of units) this.#add(unit, sink);
    if (this.#at > 1) this.#flush(sink, false, true);
  }

  #add({ data, payload }: Obu, sink: PayloadSink): void {
    const header = (data[0] as number) & 4 ? data.subarray(0, 2) : data.subarray(0, 1);
    const total = header.length + payload.length;
    for (let from = 0; from < total;) {
      if (this.#at > 1 && MAX_PAYLOAD - this.#at < Math.min(total - from, LEAST_FRAGMENT) + 2) {
        this.#flush(sink, from > 0, false);
      }
      // two bytes of length tell up to 16383
      const size = Math.min(total - from, MAX_PAYLOAD - this.#at - 2);
      this.#at = writeLength(sink.payload, this.#at, size);
      const inHeader = Math.max(0, Math.min(header.length - from, size));
      if (inHeader > 0) {
        header.copy(sink.payload, this.#at, from, from + inHeader);
        if (from === 0) sink.payload[this.#at] = (sink.payload[this.#at] as number) & ~HAS_SIZE;
      }
      const start = from + inHeader - header.length;
      payload.copy(sink.payload, this.#at + inHeader, start, start + size - inHeader);
      this.#at += size;
      from += size;
      if (from < total) this.#flush(sink, true, false);
    }
  }

  #flush(sink: PayloadSink, continued: boolean, marker: boolean): void {
    sink.payload[0] =
      (this.#continues ? CONTINUES : 0) | (continued ? CONTINUED : 0) | (this.#newSequence ? NEW_SEQUENCE : 0);
    sink.send(this.#at, marker);
    this.#at = 1;
    this.#continues = continued;
    this.#newSequence = false;
  }
}

function isSent({ type }: Obu): boolean {
  return type !== OBU.temporalDelimiter && type !== OBU.tileList && type !== OBU.padding;
}

/** LEB128 of a length below 2^14. */
function writeLength(buffer: Buffer, at: number, length: number): number {
  if (length < 128) {
    buffer[at] = length;
    return at + 1;
  }
  buffer[at] = (length & 0x7f) | 0x80;
  buffer[at + 1] = length >> 7;
  return at + 2;
}
