/** Bytes of an RTP header without CSRCs and extension (RFC 3550 section 5.1). */
export const RTP_HEADER_SIZE = 12;

/** Bytes that `writePlayoutDelay` adds after the header. */
export const PLAYOUT_DELAY_SIZE = 8;

/** Largest payload put in one packet: with headers, SRTP and TURN it passes every usual path unfragmented. */
export const MAX_PAYLOAD = 1200;

export interface RtpFields {
  readonly payloadType: number;
  readonly marker: boolean;
  /** Taken modulo 2^16. */
  readonly sequence: number;
  /** Taken modulo 2^32. */
  readonly timestamp: number;
  readonly ssrc: number;
}

/** Writes a header without CSRCs at the start of `packet`. */
export function writeRtpHeader(packet: Buffer, { payloadType, marker, sequence, timestamp, ssrc }: RtpFields): void {
  packet[0] = 0x80 | ((packet[0] as number) & 0x10);
  packet[1] = (marker ? 0x80 : 0) | payloadType;
  packet.writeUInt16BE(sequence & 0xffff, 2);
  packet.writeUInt32BE(timestamp >>> 0, 4);
  packet.writeUInt32BE(ssrc, 8);
}

/**
 * Writes, behind the header, an extension (RFC 8285, one-byte form) with the bounds of the receiver's
 * playout delay (webrtc.org/experiments/rtp-hdrext/playout-delay), which count in 10 ms.
 * @param id the extension's identifier, 1 to 14
 */
export function writePlayoutDelay(packet: Buffer, id: number, minMs: number, maxMs: number): void {
  packet[0] = 0x90;
  packet.writeUInt32BE(0xbede0001, RTP_HEADER_SIZE);
  packet[RTP_HEADER_SIZE + 4] = (id << 4) | 2;
  packet.writeUIntBE(tens(minMs) * 4096 + tens(maxMs), RTP_HEADER_SIZE + 5, 3);
}

function tens(ms: number): number {
  return Math.min(4095, Math.round(ms / 10));
}
