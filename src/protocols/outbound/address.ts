import { BlockList, isIPv6 } from 'node:net';

/** Link-local, reserved and unspecified addresses: no server is there. */
const UNREACHABLE = listOf([
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  ['240.0.0.0', 4],
  ['fe80::', 10],
  ['::', 128],
]);
const MULTICAST = listOf([
  ['224.0.0.0', 4],
  ['ff00::', 8],
]);

const LOOPBACK = listOf([
  ['127.0.0.0', 8],
  ['::1', 128],
]);

/** IPv6 prefixes of 96 bits, in front of an IPv4 address: mapped (RFC 4291, 2.5.5), and through NAT64 (RFC 6052, 2.1). */
const AROUND_IPV4 = ['0:0:0:0:0:0', '0:0:0:0:0:ffff', '64:ff9b:0:0:0:0'];
/** Largest IPv6 address below `::` that is no IPv4 address: unspecified and loopback. */
const SMALL = 1;

/** Returns the canonical form of an address: all forms that lead to one IPv4 address become that address. */
export function canonical(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = groupsOf(address);
  const [high = 0, low = 0] = groups.slice(6);
  const prefix = groups
    .slice(0, 6)
    .map((group) => group.toString(16))
    .join(':');
  const isIpv4 = AROUND_IPV4.includes(prefix) && !(prefix === AROUND_IPV4[0] && high === 0 && low <= SMALL);
  if (isIpv4) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  return hostOf(address);
}

/** @param address a canonical one */
export function isUnreachable(address: string): boolean {
  return contains(UNREACHABLE, address);
}

/** @param address a canonical one */
export function isMulticast(address: string): boolean {
  return contains(MULTICAST, address);
}

/** @param address a canonical one */
export function isLoopback(address: string): boolean {
  return contains(LOOPBACK, address);
}

function listOf(networks: readonly (readonly [address: string, prefix: number])[]): BlockList {
  const list = new BlockList();
  for (const [address, prefix] of networks) list.addSubnet(address, prefix, isIPv6(address) ? 'ipv6' : 'ipv4');
  return list;
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** As RFC 5952 writes it, without its zone. */
function hostOf(address: string): string {
  return new URL(`http://[${address.replace(/%.*/, '')}]/`).hostname.slice(1, -1);
}

function groupsOf(address: string): number[] {
  const [head = [], tail = []] = hostOf(address)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}
