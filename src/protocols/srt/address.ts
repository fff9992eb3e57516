import { isIP, isIPv6 } from 'node:net';
import { canonicalAddress } from '../../lib/address.ts';
import { SrtError } from './error.ts';

/** Address of one end of a connection. */
export interface SrtAddress {
  readonly address: string;
  readonly port: number;
}

/** Room for any address: `struct sockaddr_storage`. */
export const SOCKADDR_BYTES = 128;
/** Values of Linux. Little-endian, as is every machine that Node 24 runs on. */
const FAMILY = { ipv4: 2, ipv6: 10 } as const;
const IPV4_BYTES = 16;
const IPV6_BYTES = 28;

/**
 * `struct sockaddr_in` or `sockaddr_in6`.
 * @param host an IP address, `*` for every IPv4 address or `::` for every IPv6 address
 * @throws SrtError
 */
export function writeAddress(host: string, port: number): Buffer {
  const text = host === '*' ? '0.0.0.0' : host;
  if (isIP(text) === 0) throw new SrtError(`"${host}" is not an IP address`);
  const sockaddr = Buffer.alloc(isIPv6(text) ? IPV6_BYTES : IPV4_BYTES);
  sockaddr.writeUInt16LE(isIPv6(text) ? FAMILY.ipv6 : FAMILY.ipv4, 0);
  sockaddr.writeUInt16BE(port, 2);
  if (isIPv6(text)) groupsOf(text).forEach((group, i) => sockaddr.writeUInt16BE(group, 8 + 2 * i));
  else sockaddr.set(text.split('.').map(Number), 4);
  return sockaddr;
}

/** Reads what `writeAddress` writes; undefined for what is no IP address. An IPv4 one in IPv6 notation comes out as plain IPv4. */
export function readAddress(sockaddr: Buffer): SrtAddress | undefined {
  if (sockaddr.length < IPV4_BYTES) return undefined;
  const family = sockaddr.readUInt16LE(0);
  const port = sockaddr.readUInt16BE(2);
  if (family === FAMILY.ipv4) return { address: sockaddr.subarray(4, 8).join('.'), port };
  if (family !== FAMILY.ipv6 || sockaddr.length < IPV6_BYTES) return undefined;
  const groups = Array.from({ length: 8 }, (_, i) => sockaddr.readUInt16BE(8 + 2 * i).toString(16));
  return { address: canonicalAddress(groups.join(':')), port };
}

/** Address at which this machine reaches a port that listens on a host of SrtListenOptions. */
export function reachableHost(host: string): string {
  if (host === '*' || host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** Whether this is the wildcard address. */
export function isUnspecified({ address }: SrtAddress): boolean {
  return address === '0.0.0.0' || address === '::';
}

/** The eight groups of an IPv6 address, without its zone. */
function groupsOf(text: string): number[] {
  const [address = ''] = text.split('%', 1);
  // one notation for all: lower case hexadecimal groups, with one gap at most
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const front = read(head);
  const back = read(tail ?? '');
  return [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
}
