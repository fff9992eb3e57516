import { isIPv4, isIPv6 } from 'node:net';
import { canonicalAddress } from '../lib/address.ts';

/** Both ends of a connection: `remote` is the client's side, `local` this server's. */
export interface Peer {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

export interface ProxyHeader {
  /** The client's connection to the proxy; undefined when the proxy speaks for itself (LOCAL, UNKNOWN, UNSPEC). */
  readonly peer: Peer | undefined;
  /** Length of the header; the client's own bytes follow. */
  readonly consumed: number;
}

export class ProxyProtocolError extends Error {
  override readonly name = 'ProxyProtocolError';
}

const V1_PREFIX = Buffer.from('PROXY ');
const V1_MAX_BYTES = 107;
const V2_SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]);
const V2_FIXED_BYTES = 16;

/** Bytes of a header with its extensions (TLVs) beyond which it is refused. */
const MAX_PROXY_HEADER_BYTES = 4096;

/**
 * Reads a PROXY protocol header, version 1 or 2, from the first bytes of a connection.
 * Extensions of version 2 are skipped. (haproxy.org, "The PROXY protocol", sections 2.1 and 2.2)
 * @returns undefined when more bytes are needed, which is never for MAX_PROXY_HEADER_BYTES and more
 * @throws ProxyProtocolError when the bytes are no header or a malformed one
 */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | undefined {
  if (startsAs(bytes, V2_SIGNATURE)) return parseV2(bytes);
  if (startsAs(bytes, V1_PREFIX)) return parseV1(bytes);
  throw new ProxyProtocolError('no PROXY protocol header');
}

/** True when the first bytes of a connection are those of a PROXY protocol header, as far as they go. */
export function isProxyHeader(bytes: Buffer): boolean {
  return startsAs(bytes, V2_SIGNATURE) || startsAs(bytes, V1_PREFIX);
}

/** True when `bytes` begin with `prefix`, as far as they go. */
function startsAs(bytes: Buffer, prefix: Buffer): boolean {
  const length = Math.min(bytes.length, prefix.length);
  return bytes.compare(prefix, 0, length, 0, length) === 0;
}

function parseV1(bytes: Buffer): ProxyHeader | undefined {
  const end = bytes.subarray(0, V1_MAX_BYTES).indexOf('\r\n');
  if (end < 0) {
    if (bytes.length >= V1_MAX_BYTES) throw new ProxyProtocolError('version 1 header without end');
    return undefined;
  }
  const consumed = end + 2;
  const words = bytes.toString('latin1', 0, end).split(' ');
  const [, family, source, destination, sourcePort, destinationPort, ...rest] = words;
  if (family === 'UNKNOWN') return { peer: undefined, consumed };
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : undefined;
  if (isAddress === undefined) throw new ProxyProtocolError('version 1 header of an unknown family');
  if (rest.length > 0 || !isAddress(source ?? '') || !isAddress(destination ?? '')) {
    throw new ProxyProtocolError('version 1 header with malformed addresses');
  }
  return {
    peer: {
      remoteAddress: canonicalAddress(source as string),
      remotePort: parsePort(sourcePort),
      localAddress: canonicalAddress(destination as string),
      localPort: parsePort(destinationPort),
    },
    consumed,
  };
}

function parsePort(text = ''): number {
  const port = /^(0|[1-9]\d{0,4})$/.test(text) ? Number(text) : Infinity;
  if (port > 65_535) throw new ProxyProtocolError('version 1 header with a malformed port');
  return port;
}

function parseV2(bytes: Buffer): ProxyHeader | undefined {
  if (bytes.length < V2_FIXED_BYTES) return undefined;
  const versionAndCommand = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const length = bytes.readUInt16BE(14);
  const consumed = V2_FIXED_BYTES + length;
  if (versionAndCommand !== 0x20 && versionAndCommand !== 0x21) {
    throw new ProxyProtocolError('version 2 header with an unknown version or command');
  }
  if (family >> 4 > 3 || (family & 0xf) > 2) throw new ProxyProtocolError('version 2 header of an unknown family');
  if (consumed > MAX_PROXY_HEADER_BYTES) throw new ProxyProtocolError('version 2 header too long');
  const isLocal = versionAndCommand === 0x20;
  const addressBytes = family === 0x11 ? 4 : family === 0x21 ? 16 : 0;
  const known = !isLocal && addressBytes > 0;
  if (known && length < 2 * addressBytes + 4) throw new ProxyProtocolError('version 2 header too short for its family');
  if (bytes.length < consumed) return undefined;
  if (!known) return { peer: undefined, consumed };
  const ports = V2_FIXED_BYTES + 2 * addressBytes;
  return {
    peer: {
      remoteAddress: addressText(bytes.subarray(V2_FIXED_BYTES, V2_FIXED_BYTES + addressBytes)),
      remotePort: bytes.readUInt16BE(ports),
      localAddress: addressText(bytes.subarray(V2_FIXED_BYTES + addressBytes, ports)),
      localPort: bytes.readUInt16BE(ports + 2),
    },
    consumed,
  };
}

/** Text form of an address of 4 or 16 bytes. */
function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.');
  return canonicalAddress(Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(':'));
}
