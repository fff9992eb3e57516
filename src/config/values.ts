import { isIP, isIPv4, isIPv6 } from 'node:net';
import type { Transport } from '../lib/address.ts';

/** Ports `first` to `last`, inclusive. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface Endpoint {
  /** An IP address, a host name, or `*`. */
  readonly host: string;
  readonly port: number;
}

/** `IP:port[-port]/udp|tcp` of WebRTC's IceCandidates. */
export interface IceCandidate extends PortRange {
  /** An IP address, or `*` for every address of the machine. */
  readonly address: string;
  readonly protocol: Transport;
}

/** Addresses that share their first `prefix` bits: the arguments of `net.BlockList.addSubnet`. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

const UNITS: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

/** Bytes of a `byteSize`: `800M` has 800 times 2^20. */
export function byteCount(text: string): number {
  return Number.parseInt(text) * (UNITS[text.slice(-1).toUpperCase()] ?? 1);
}

/** A TCP or UDP port number in decimal digits, 1 to 65535; undefined for anything else. */
export function parsePort(text: string): number | undefined {
  if (!/^\d{1,5}$/.test(text)) return undefined;
  const port = Number(text);
  return port >= 1 && port <= 65535 ? port : undefined;
}

/** Parses `1935`, or `1935/tcp` if the suffix agrees with `transport`. */
export function parsePortOf(text: string, transport: Transport): number | undefined {
  const [port = '', suffix, ...more] = text.split('/');
  if (more.length > 0 || (suffix !== undefined && suffix.toLowerCase() !== transport)) return undefined;
  return parsePort(port);
}

function parseRange(text: string): PortRange | undefined {
  const [from = '', to = from, ...more] = text.split('-');
  const first = parsePort(from.trim());
  const last = parsePort(to.trim());
  if (more.length > 0 || first === undefined || last === undefined || last < first) return undefined;
  return { first, last };
}

/** Parses `4000-4003,4005/udp`: ranges and single ports with one suffix at the end or after each. */
export function parsePortRanges(text: string, transport: Transport): readonly PortRange[] | undefined {
  const ranges: PortRange[] = [];
  for (const part of text.split(',')) {
    const [ports = '', suffix, ...more] = part.trim().split('/');
    if (more.length > 0 || (suffix !== undefined && suffix.toLowerCase() !== transport)) return undefined;
    const range = parseRange(ports);
    if (range === undefined) return undefined;
    ranges.push(range);
  }
  return ranges;
}

function splitHost(text: string): [host: string, rest: string] | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(.+)$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain, rest = ''] = match;
  if (bracketed !== undefined) return isIPv6(bracketed) ? [bracketed, rest] : undefined;
  return [plain as string, rest];
}

/** Parses `host:port`, `[v6]:port` or `*:port`. */
export function parseEndpoint(text: string): Endpoint | undefined {
  const [host, rest] = splitHost(text) ?? [];
  const port = parsePort(rest ?? '');
  if (host === undefined || port === undefined || !/^(\*|[\w.-]+|[\da-f:.]+)$/i.test(host)) return undefined;
  return { host, port };
}

export function parseIceCandidate(text: string): IceCandidate | undefined {
  const [address, rest = ''] = splitHost(text) ?? [];
  if (address === undefined || (address !== '*' && isIP(address) === 0)) return undefined;
  const [ports = '', protocol = '', ...more] = rest.split('/');
  const range = parseRange(ports);
  const transport = protocol.toLowerCase();
  if (more.length > 0 || range === undefined || (transport !== 'udp' && transport !== 'tcp')) return undefined;
  return { address, ...range, protocol: transport };
}

function parseNetwork(text: string): Network | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const longest = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
  if (longest === 0 || more.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return undefined;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix > longest ? undefined : { address, prefix, family: longest === 32 ? 'ipv4' : 'ipv6' };
}

/** Parses `10.0.0.0/8, ::1`: networks in CIDR notation and single addresses. */
export function parseNetworks(text: string): readonly Network[] | undefined {
  const networks = text.split(',').map((part) => parseNetwork(part.trim()));
  return networks.every((network) => network !== undefined) ? networks : undefined;
}

/** Parses `*`, `::` or an IP address to listen on. */
export function parseListenAddress(text: string): string | undefined {
  return text === '*' || isIP(text) !== 0 ? text : undefined;
}

/** Parses bits per second, above 0: a number, or text that ends with K (x1024) or M (x1024²). */
export function parseBitrate(given: unknown): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([km]?)$/i.exec(String(given).trim());
  if (match === null || (typeof given !== 'number' && typeof given !== 'string')) return undefined;
  const unit = { '': 1, k: 1024, m: 1024 * 1024 }[(match[2] as string).toLowerCase() as '' | 'k' | 'm'];
  const bitrate = Math.round(Number(match[1]) * unit);
  return bitrate > 0 && bitrate <= 0xffff_ffff ? bitrate : undefined;
}

/** Parses an absolute URL of one of the schemes, kept as it was written. */
export function parseUrl(text: string, schemes: readonly string[]): string | undefined {
  if (!URL.canParse(text)) return undefined;
  return schemes.includes(new URL(text).protocol.slice(0, -1)) ? text : undefined;
}

/** Origin of an http or https URL of a host alone, with a port unless it is the scheme's default. */
export function parseOrigin(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, href } = new URL(text);
  return /^https?:$/.test(protocol) && href === `${origin}/` ? origin : undefined;
}

/** Parses the URL of a STUN or TURN server (RFC 7064, RFC 7065), kept as it was written. */
export function parseIceUrl(text: string): string | undefined {
  return /^(?:stuns?|turns?):(?:\[[\da-f:.]+\]|[^\s/?#:[\]]+)(?::\d{1,5})?(?:\?transport=\w+)?$/i.test(text)
    ? text
    : undefined;
}
