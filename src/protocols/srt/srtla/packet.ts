/**
 * Packets of SRTLA, which bonds network links for SRT (README of BELABOX/srtla, "How does it work?"). Their types are control
 * types that SRT does not use.
 */
export const TYPE = {
  keepAlive: 0x9000,
  ack: 0x9100,
  /** Asks for a group, with an id whose first half the sender chose. */
  group: 0x9200,
  /** Completes the id when the receiver sends it; adds a link to its group when the sender does. */
  link: 0x9201,
  linked: 0x9202,
  /** Try again later. */
  busy: 0x9210,
  /** There is no such group: register anew. */
  noGroup: 0x9211,
} as const;

export const ID_BYTES = 256;
/** Packets that one acknowledgement lists. */
export const ACKED = 10;
const TYPE_BYTES = 2;
const ACK_HEAD_BYTES = 4;
/** Header of SRT (draft-sharabayko-srt-01 section 3). */
const SRT_HEAD_BYTES = 16;
/** Ethernet's. No SRT packet is longer. */
const MAX_BYTES = 1500;
const CONTROL = 0x8000;
const SRT_ACK = 0x8002;
const SRT_NAK = 0x8003;
/** Control types of SRT, and its own for user-defined ones. */
const SRT_TYPES: ReadonlySet<number> = new Set([...Array.from({ length: 10 }, (_, type) => CONTROL | type), 0xffff]);

export type SrtlaPacket =
  | { readonly kind: 'group' | 'link'; readonly id: Buffer }
  | { readonly kind: 'keepAlive' | 'control' }
  | { readonly kind: 'data'; readonly sequence: number };

const KEEP_ALIVE = { kind: 'keepAlive' } as const;
const SRT_CONTROL = { kind: 'control' } as const;

/** Reads a packet of a sender; undefined for what is none. SRTLA's own may be padded at the end. */
export function readPacket(data: Buffer): SrtlaPacket | undefined {
  if (data.length < TYPE_BYTES || data.length > MAX_BYTES) return undefined;
  const type = data.readUInt16BE(0);
  if (type === TYPE.keepAlive) return KEEP_ALIVE;
  if (type === TYPE.group || type === TYPE.link) {
    if (data.length < TYPE_BYTES + ID_BYTES) return undefined;
    const id = data.subarray(TYPE_BYTES, TYPE_BYTES + ID_BYTES);
    return { kind: type === TYPE.group ? 'group' : 'link', id };
  }
  if (data.length < SRT_HEAD_BYTES) return undefined;
  if (type < CONTROL) return { kind: 'data', sequence: data.readUInt32BE(0) };
  return SRT_TYPES.has(type) ? SRT_CONTROL : undefined;
}

/** Whether a packet of the SRT server is about what was received: every link needs it, to know what it lost. */
export function isFeedback(data: Buffer): boolean {
  const type = data.length < TYPE_BYTES ? 0 : data.readUInt16BE(0);
  return type === SRT_ACK || type === SRT_NAK;
}

export function writeShort(type: number): Buffer {
  return Buffer.from([type >> 8, type & 0xff]);
}

export function writeId(id: Buffer): Buffer {
  return Buffer.concat([writeShort(TYPE.link), id]);
}

/** @param sequences of data packets that a link received */
export function writeAck(sequences: readonly number[]): Buffer {
  const packet = Buffer.alloc(ACK_HEAD_BYTES + 4 * sequences.length);
  packet.writeUInt16BE(TYPE.ack);
  sequences.forEach((sequence, i) => packet.writeUInt32BE(sequence, ACK_HEAD_BYTES + 4 * i));
  return packet;
}
