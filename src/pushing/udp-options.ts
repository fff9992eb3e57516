import { isIP } from 'node:net';
import { PACKET_BYTES } from '../containers/mpegts/stream-types.ts';
import { PushError } from './error.ts';

/** Options in the query of a UDP URL. */
export interface UdpOptions {
  /** Datagram size: whole transport packets. */
  readonly datagramBytes: number;
  /** Most hops of a datagram; undefined for the system's default, which lets multicast pass no router. */
  readonly ttl: number | undefined;
  /** Address of the network interface to send from. */
  readonly localAddress: string | undefined;
}

/** Seven transport packets: fits the MTU of every usual network. */
const DATAGRAM_BYTES = 7 * PACKET_BYTES;
const MAX_DATAGRAM_BYTES = 65_507;
/** Options of ffmpeg for receivers only, or without effect here. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'buffer_size',
  'connect',
  'fifo_size',
  'overrun_nonfatal',
  'reuse',
  'reuse_addr',
  'timeout',
]);
const KNOWN: ReadonlySet<string> = new Set(['pkt_size', 'ttl', 'localaddr', ...WITHOUT_EFFECT]);

/** Reads the query of a UDP URL, with the names of ffmpeg: `pkt_size`, `ttl`, `localaddr`. @throws PushError */
export function readUdpOptions({ searchParams }: URL): UdpOptions {
  for (const key of searchParams.keys())
    if (!KNOWN.has(key)) throw new PushError(`Could not parse url: ${key} is not an option of UDP`);
  const bytes = integer(searchParams, 'pkt_size', PACKET_BYTES, MAX_DATAGRAM_BYTES) ?? DATAGRAM_BYTES;
  const localAddress = searchParams.get('localaddr') ?? undefined;
  if (localAddress !== undefined && isIP(localAddress) === 0)
    throw new PushError('Could not parse url: localaddr is not an IP address');
  return { datagramBytes: bytes - (bytes % PACKET_BYTES), ttl: integer(searchParams, 'ttl', 1, 255), localAddress };
}

function integer(query: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value < min || value > max)
    throw new PushError(`Could not parse url: ${name} is not a number from ${min} to ${max}`);
  return value;
}
