import { isIPv4, isIPv6, SocketAddress } from 'node:net';

export type Transport = 'udp' | 'tcp';

const MAPPED = '::ffff:';

/** Shortest form of an IP address; an IPv4-mapped one (`::ffff:a.b.c.d`) becomes plain IPv4. Zones stay. */
export function canonicalAddress(text: string): string {
  if (isIPv4(text) || text.includes('%')) return text;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  return address.startsWith(MAPPED) && isIPv4(address.slice(MAPPED.length)) ? address.slice(MAPPED.length) : address;
}

/** Host as URLs have it: IPv6 addresses in brackets. */
export function hostInUrl(host: string): string {
  return isIPv6(host) ? `[${host}]` : host;
}

/** Host of a URL without the brackets around IPv6 addresses. */
export function hostFromUrl(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}
