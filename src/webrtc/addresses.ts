import { isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { IceCandidate } from '../config/values.ts';
import type { Transport } from '../lib/address.ts';

/** A socket that a media worker opens, and the addresses under which peers reach it. */
export interface IceSocket {
  readonly protocol: Transport;
  /** Local address to bind. */
  readonly ip: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly announced: readonly string[];
}

export interface LocalAddress {
  readonly address: string;
  readonly internal: boolean;
}

const LOOPBACK = '127.0.0.1';
const EVERY_IPV4 = new Set(['*', '0.0.0.0']);

/** Addresses of this machine, loopback included. */
export function localAddresses(): LocalAddress[] {
  return Object.values(networkInterfaces()).flatMap((list) => list ?? []);
}

/**
 * Number of media workers that can have a port of their own: the number of ports of the widest entry, UDP before TCP.
 * @param most upper limit
 */
export function workerCount(candidates: readonly IceCandidate[], most: number): number {
  const udp = candidates.filter(({ protocol }) => protocol === 'udp');
  const ports = (udp.length > 0 ? udp : candidates).map(({ first, last }) => (first === 0 ? most : last - first + 1));
  return Math.max(1, Math.min(most, ...(ports.length > 0 ? [Math.max(...ports)] : [])));
}

/**
 * The sockets of worker `index`: port `first + index` of each entry that has so many.
 * `*` is every local IPv4 address except loopback (used when there is no other), each with a socket of its own,
 * so that answers leave from the address that was asked. An address that is not local is announced by the first socket
 * of its family on that port, else by a socket on all addresses.
 */
export function iceSockets(
  candidates: readonly IceCandidate[],
  index: number,
  locals: readonly LocalAddress[],
  linkLocal: boolean,
): IceSocket[] {
  const groups = new Map<string, IceCandidate[]>();
  for (const candidate of candidates) {
    if (candidate.first + index > candidate.last && candidate.first !== 0) continue;
    const port = candidate.first === 0 ? 0 : candidate.first + index;
    const key = `${candidate.protocol} ${port}`;
    groups.set(key, [...(groups.get(key) ?? []), candidate]);
  }
  return [...groups].flatMap(([key, group]) => {
    const [protocol, port] = key.split(' ') as [Transport, string];
    return groupSockets(group, protocol, Number(port), locals, linkLocal);
  });
}

function groupSockets(
  group: readonly IceCandidate[],
  protocol: Transport,
  port: number,
  locals: readonly LocalAddress[],
  linkLocal: boolean,
): IceSocket[] {
  const bound = new Set<string>();
  const foreign = new Set<string>();
  for (const { address } of group) {
    if (EVERY_IPV4.has(address)) for (const ip of usableAddresses(locals, isIPv4, linkLocal)) bound.add(ip);
    else if (address === '::') for (const ip of usableAddresses(locals, isIPv6, linkLocal)) bound.add(ip);
    else if (locals.some((local) => local.address === address)) bound.add(address);
    else foreign.add(address);
  }
  const sockets = [...bound].map((ip) => ({ protocol, ip, port, announced: [ip] }));
  for (const address of foreign) {
    const sameFamily = isIPv4(address) ? isIPv4 : isIPv6;
    const socket = sockets.find(({ ip }) => sameFamily(ip));
    if (socket === undefined) {
      sockets.push({ protocol, ip: isIPv4(address) ? '0.0.0.0' : '::', port, announced: [address] });
    } else {
      socket.announced.push(address);
    }
  }
  return sockets;
}

/** Addresses of one family that other machines may reach; loopback where IPv4 has no other. */
export function usableAddresses(
  locals: readonly LocalAddress[],
  family: (ip: string) => boolean,
  linkLocal: boolean,
): string[] {
  const found = locals
    .filter(({ address, internal }) => family(address) && !internal && (linkLocal || !isLinkLocal(address)))
    .map(({ address }) => address);
  return found.length > 0 || family !== isIPv4 ? found : [LOOPBACK];
}

function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab]/i.test(address);
}
