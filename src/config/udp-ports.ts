import { isIP, isIPv6 } from 'node:net';
import { hostInUrl } from '../lib/address.ts';
import { parsePortRanges, type PortRange } from './values.ts';

/** UDP ports, of a multicast group if one is named. */
export interface UdpPorts extends PortRange {
  readonly group?: string;
}

/** Parses ports of the server's own addresses and of multicast groups: `4000-4003,239.1.2.3:5000,[ff15::7]:5000/udp`. */
export function parseUdpPorts(text: string): readonly UdpPorts[] | undefined {
  const all: UdpPorts[] = [];
  for (const part of text.split(',')) {
    const [, bracketed, plain, ports = ''] = /^(?:\[([^\]]*)\]:|([^:[\]]*):)?([^:]*)$/.exec(part.trim()) ?? [];
    const group = bracketed ?? plain;
    const ranges = parsePortRanges(ports, 'udp');
    if (ranges === undefined) return undefined;
    if (group !== undefined && (!isMulticast(group) || isIPv6(group) !== (bracketed !== undefined))) return undefined;
    all.push(...ranges.map((range) => (group === undefined ? range : { group: group.toLowerCase(), ...range })));
  }
  return all;
}

/** Whether two ranges of ports of the same address overlap. */
export function isSamePort(one: UdpPorts, other: UdpPorts): boolean {
  return one.group === other.group && overlap(one, other);
}

/** Whether two ranges cannot both be bound: nor can ports of a group and the same ports of the server itself. */
export function overlap(one: UdpPorts, other: UdpPorts): boolean {
  const isApart = one.group !== undefined && other.group !== undefined && one.group !== other.group;
  return !isApart && one.first <= other.last && other.first <= one.last;
}

/** URL of the ports for a sender. @param host for ports without a group */
export function udpUrl({ first, last, group }: UdpPorts, host: string): string {
  return `udp://${group === undefined ? host : hostInUrl(group)}:${first === last ? first : `${first}-${last}`}`;
}

/** See RFC 5771 and RFC 4291 section 2.7. */
function isMulticast(address: string): boolean {
  if (isIP(address) === 6) return /^ff/i.test(address);
  const first = Number(address.split('.', 1)[0]);
  return isIP(address) === 4 && first >= 224 && first <= 239;
}
