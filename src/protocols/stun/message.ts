import { createHmac, timingSafeEqual } from 'node:crypto';
import { isIPv6, SocketAddress } from 'node:net';
import { crc32 } from 'node:zlib';

/** Binding messages of STUN (RFC 8489) with the attributes of ICE (RFC 8445 section 7.1). */
export interface StunMessage {
  readonly kind: keyof typeof TYPES;
  /** 12 bytes. */
  readonly transaction: Buffer;
  readonly username?: string;
  readonly priority?: number;
  /** USE-CANDIDATE: the pair is to be used. */
  readonly nominates?: boolean;
  /** Number that decides between two agents that both control. */
  readonly controlling?: bigint;
  /** Address from which the other end sees a request. */
  readonly mapped?: StunAddress;
  readonly error?: number;
}

export interface StunAddress {
  readonly address: string;
  readonly port: number;
}

export const TRANSACTION_BYTES = 12;

const TYPES = { request: 0x0001, indication: 0x0011, success: 0x0101, error: 0x0111 } as const;
const MAGIC_COOKIE = 0x2112a442;
const HEADER_BYTES = 20;
const ATTRIBUTE = {
  username: 0x0006,
  integrity: 0x0008,
  error: 0x0009,
  mapped: 0x0020,
  priority: 0x0024,
  nominates: 0x0025,
  fingerprint: 0x8028,
  controlling: 0x802a,
} as const;
const INTEGRITY_BYTES = 20;
const FINGERPRINT_XOR = 0x5354554e;
const FAMILY = { ipv4: 1, ipv6: 2 } as const;
const ERROR_CLASS = 100;

/** Whether a datagram that came where DTLS and RTP come too is STUN (RFC 7983 section 7). */
export function isStun(datagram: Buffer): boolean {
  return datagram.length >= HEADER_BYTES && (datagram[0] as number) < 4 && datagram.readUInt32BE(4) === MAGIC_COOKIE;
}

/**
 * Reads a binding message whose FINGERPRINT, if it has one, is right.
 * @param password where it is given, the message has a MESSAGE-INTEGRITY by it
 * @returns undefined for all others
 */
export function readStun(datagram: Buffer, password?: string): StunMessage | undefined {
  if (!isStun(datagram) || datagram.readUInt16BE(2) !== datagram.length - HEADER_BYTES) return undefined;
  const type = datagram.readUInt16BE(0);
  const kind = (Object.keys(TYPES) as StunMessage['kind'][]).find((one) => TYPES[one] === type);
  if (kind === undefined) return undefined;
  const message = { kind, transaction: datagram.subarray(8, HEADER_BYTES) };
  const fields: Partial<StunMessage> = {};
  let isAuthentic = password === undefined;
  let isSealed = false;
  for (let at = HEADER_BYTES; at < datagram.length;) {
    if (at + 4 > datagram.length) return undefined;
    const attribute = datagram.readUInt16BE(at);
    const end = at + 4 + datagram.readUInt16BE(at + 2);
    if (end > datagram.length) return undefined;
    const value = datagram.subarray(at + 4, end);
    if (attribute === ATTRIBUTE.fingerprint) {
      if (value.length !== 4 || value.readUInt32BE(0) !== fingerprintOf(datagram.subarray(0, at))) return undefined;
    } else if (attribute === ATTRIBUTE.integrity && !isSealed) {
      if (password !== undefined) isAuthentic = isEqual(value, integrityOf(datagram.subarray(0, at), password));
      isSealed = true;
    } else if (!isSealed) {
      // what follows the integrity is not protected by it (RFC 8489 section 14.5)
      Object.assign(fields, readAttribute(attribute, value, message.transaction));
    }
    at = end + (-end & 3);
  }
  return isAuthentic ? { ...message, ...fields } : undefined;
}

/** Writes a binding message with a MESSAGE-INTEGRITY by a password, and a FINGERPRINT. */
export function writeStun(message: StunMessage, password: string): Buffer {
  const { kind, transaction, username, priority, nominates, controlling, mapped, error } = message;
  const parts: Buffer[] = [];
  if (username !== undefined) parts.push(attributeOf(ATTRIBUTE.username, Buffer.from(username)));
  if (priority !== undefined) parts.push(attributeOf(ATTRIBUTE.priority, uint32(priority)));
  if (controlling !== undefined) {
    const value = Buffer.alloc(8);
    value.writeBigUInt64BE(controlling);
    parts.push(attributeOf(ATTRIBUTE.controlling, value));
  }
  if (nominates === true) parts.push(attributeOf(ATTRIBUTE.nominates, Buffer.alloc(0)));
  if (mapped !== undefined) parts.push(attributeOf(ATTRIBUTE.mapped, mappedValue(mapped, transaction)));
  if (error !== undefined)
    parts.push(attributeOf(ATTRIBUTE.error, Buffer.from([0, 0, Math.trunc(error / ERROR_CLASS), error % ERROR_CLASS])));
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(TYPES[kind], 0);
  header.writeUInt32BE(MAGIC_COOKIE, 4);
  transaction.copy(header, 8);
  const body = Buffer.concat([header, ...parts]);
  const sealed = Buffer.concat([body, attributeOf(ATTRIBUTE.integrity, integrityOf(body, password))]);
  sealed.writeUInt16BE(sealed.length - HEADER_BYTES + 8, 2);
  return Buffer.concat([sealed, attributeOf(ATTRIBUTE.fingerprint, uint32(fingerprintOf(sealed)))]);
}

function readAttribute(type: number, value: Buffer, transaction: Buffer): Partial<StunMessage> {
  if (type === ATTRIBUTE.username) return { username: value.toString() };
  if (type === ATTRIBUTE.nominates) return { nominates: true };
  if (type === ATTRIBUTE.priority && value.length === 4) return { priority: value.readUInt32BE(0) };
  if (type === ATTRIBUTE.controlling && value.length === 8) return { controlling: value.readBigUInt64BE(0) };
  if (type === ATTRIBUTE.error && value.length >= 4)
    return { error: (value.readUInt8(2) & 7) * ERROR_CLASS + value.readUInt8(3) };
  if (type !== ATTRIBUTE.mapped) return {};
  const mapped = readMapped(value, transaction);
  return mapped === undefined ? {} : { mapped };
}

/** Key of the exclusive or in addresses: the cookie, and for IPv6 the transaction too (RFC 8489 section 14.2). */
function maskOf(transaction: Buffer): Buffer {
  return Buffer.concat([uint32(MAGIC_COOKIE), transaction]);
}

function readMapped(value: Buffer, transaction: Buffer): StunAddress | undefined {
  const bytes = value[1] === FAMILY.ipv4 ? 4 : value[1] === FAMILY.ipv6 ? 16 : 0;
  if (bytes === 0 || value.length !== 4 + bytes) return undefined;
  const mask = maskOf(transaction);
  const port = value.readUInt16BE(2) ^ (MAGIC_COOKIE >>> 16);
  const plain = value.subarray(4).map((byte, index) => byte ^ (mask[index] as number));
  if (bytes === 4) return { address: plain.join('.'), port };
  const groups = Array.from({ length: 8 }, (_, index) =>
    Buffer.from(plain)
      .readUInt16BE(index * 2)
      .toString(16),
  );
  return { address: new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address, port };
}

function mappedValue({ address, port }: StunAddress, transaction: Buffer): Buffer {
  const bytes = isIPv6(address) ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number));
  const mask = maskOf(transaction);
  const head = Buffer.from([0, isIPv6(address) ? FAMILY.ipv6 : FAMILY.ipv4, 0, 0]);
  head.writeUInt16BE(port ^ (MAGIC_COOKIE >>> 16), 2);
  return Buffer.concat([head, bytes.map((byte, index) => byte ^ (mask[index] as number))]);
}

function ipv6Bytes(address: string): Buffer {
  const plain = address.replace(/%.*/, '').replace(/\d+\.\d+\.\d+\.\d+$/, (ipv4) => {
    const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = [], tail = []] = plain.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  const bytes = Buffer.alloc(16);
  [...head, ...zeros, ...tail].forEach((group, index) => bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2));
  return bytes;
}

function attributeOf(type: number, value: Buffer): Buffer {
  const bytes = Buffer.alloc(4 + value.length + (-value.length & 3));
  bytes.writeUInt16BE(type, 0);
  bytes.writeUInt16BE(value.length, 2);
  value.copy(bytes, 4);
  return bytes;
}

/** @param before the message up to the attribute, whose length is then that with the attribute (RFC 8489 section 14.5) */
function integrityOf(before: Buffer, password: string): Buffer {
  const copy = Buffer.from(before);
  copy.writeUInt16BE(before.length - HEADER_BYTES + 4 + INTEGRITY_BYTES, 2);
  return createHmac('sha1', password).update(copy).digest();
}

/** @param before the message up to the attribute, with the length of the whole (RFC 8489 section 14.7) */
function fingerprintOf(before: Buffer): number {
  return (crc32(before) ^ FINGERPRINT_XOR) >>> 0;
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}
