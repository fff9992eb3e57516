/** How media is cut on its way to a viewer, so that all viewers of a kind get the same bytes. */
export const FRAMINGS = {
  /** As it is: HTTP/1.0 ends with its connection, HTTP/2 has frames of its own. */
  plain: (pieces: readonly Buffer[]): Buffer => Buffer.concat(pieces),
  /** A chunk of HTTP/1.1 (RFC 9112 section 7.1). */
  chunked: (pieces: readonly Buffer[]): Buffer =>
    Buffer.concat([Buffer.from(`${lengthOf(pieces).toString(16)}\r\n`, 'latin1'), ...pieces, CRLF]),
  /** A binary message of a WebSocket (RFC 6455 section 5.2). */
  message: (pieces: readonly Buffer[]): Buffer => Buffer.concat([messageHead(lengthOf(pieces)), ...pieces]),
} as const;

export type Framing = keyof typeof FRAMINGS;

const CRLF = Buffer.from('\r\n', 'latin1');
/** The only and last frame of a binary message. */
const BINARY = 0x82;
/** Longest messages whose length has 7 and 16 bits. */
const MAX_SHORT = 125;
const MAX_MEDIUM = 0xffff;
const MEDIUM = 126;
const LONG = 127;

function messageHead(length: number): Buffer {
  if (length <= MAX_SHORT) return Buffer.of(BINARY, length);
  if (length <= MAX_MEDIUM) return Buffer.of(BINARY, MEDIUM, length >> 8, length & 0xff);
  const head = Buffer.alloc(10);
  head[0] = BINARY;
  head[1] = LONG;
  head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

function lengthOf(pieces: readonly Buffer[]): number {
  let length = 0;
  for (const piece of pieces) length += piece.length;
  return length;
}
