import { hostFromUrl } from '../lib/address.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../protocols/outbound/fragment.ts';
import type { Credentials } from '../protocols/rtmp/publisher-authentication.ts';
import { PushError } from './error.ts';
import { readSrtQuery } from './srt-options.ts';
import { readUdpOptions } from './udp-options.ts';

/** Protocols of pushes, and the schemes that their URLs may have. */
const SCHEMES = {
  rtmp: ['rtmp', 'rtmps'],
  mpegts: ['udp', 'tcp'],
  srt: ['srt'],
} as const;

export type PushProtocol = keyof typeof SCHEMES;
type Scheme = (typeof SCHEMES)[PushProtocol][number];

const PORTS: Readonly<Record<Scheme, number>> = { rtmp: 1935, rtmps: 443, udp: 4000, tcp: 4000, srt: 9999 };

/** Where a stream is pushed to. */
export interface Destination {
  readonly protocol: PushProtocol;
  readonly scheme: Scheme;
  readonly url: URL;
  readonly host: string;
  readonly port: number;
  /** Empty where the protocol has none. */
  readonly streamKey: string;
}

/** The protocol of this name, in any case; undefined for one that is not known. */
export function pushProtocol(name: string): PushProtocol | undefined {
  const lower = name.toLowerCase();
  return Object.hasOwn(SCHEMES, lower) ? (lower as PushProtocol) : undefined;
}

/**
 * Reads the URL of a destination.
 * @throws PushError with the texts of OvenMediaEngine (docs/compatibility.md#recordings-pushes-dumps)
 */
export function readDestination(protocol: PushProtocol, given: string, streamKey: string): Destination {
  const href = protocol === 'srt' ? withWholeQuery(given) : given;
  if (cutsCredentials(href)) throw new PushError(`Could not parse url: ${FRAGMENT_FAULT}`);
  if (!URL.canParse(href)) throw new PushError('Could not parse url');
  const url = new URL(href);
  if (url.hash !== '') throw new PushError(`Could not parse url: ${FRAGMENT_FAULT}`);
  const scheme = url.protocol.slice(0, -1);
  if (!isSchemeOf(protocol, scheme)) throw new PushError('Unsupported protocol');
  if (url.hostname === '' || url.port === '0' || (protocol === 'rtmp' && appOf(url) === ''))
    throw new PushError('Could not parse url');
  if (scheme === 'tcp' && url.searchParams.has('listen')) throw new PushError('Unsupported tcp listen');
  if (scheme === 'srt') readSrtQuery(url);
  if (scheme === 'udp') readUdpOptions(url);
  if (protocol === 'rtmp') credentialsOf(url);
  const port = url.port === '' ? PORTS[scheme] : Number(url.port);
  return { protocol, scheme, url, host: hostFromUrl(url.hostname), port, streamKey };
}

/**
 * A `#` in the query of an SRT URL is part of it: stream ids begin with `#!::` (SRT Access Control Guidelines), and SRT's own tools
 * and ffmpeg take them as they are.
 */
function withWholeQuery(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? url : url.slice(0, at) + url.slice(at).replaceAll('#', '%23');
}

/**
 * Where a server wants to be connected to instead (Enhanced RTMP v2, "Reconnect Request").
 * @param tcUrl relative to the destination's; undefined for the same one
 * @throws PushError when that is no destination, or gives up TLS
 */
export function movedDestination(destination: Destination, tcUrl: string | undefined): Destination {
  const { protocol, scheme, url, streamKey } = destination;
  if (tcUrl === undefined) return destination;
  if (!URL.canParse(tcUrl, url.href)) throw new PushError('Could not parse url');
  const moved = readDestination(protocol, new URL(tcUrl, url.href).href, streamKey);
  if (scheme === 'rtmps' && moved.scheme !== scheme) throw new PushError('the new address has no TLS');
  return moved;
}

/** The application that the URL of an RTMP server names, with what follows it but for a slash at the end. */
export function appOf({ pathname, search }: URL): string {
  return (pathname + search).replace(/^\/+/, '').replace(/\/$/, '');
}

/** The user and the password of an RTMP URL; undefined without a user. @throws PushError when they are badly escaped */
export function credentialsOf({ username, password }: URL): Credentials | undefined {
  if (username === '') return undefined;
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
  } catch {
    throw new PushError('Could not parse url');
  }
}

function isSchemeOf(protocol: PushProtocol, scheme: string): scheme is Scheme {
  return (SCHEMES[protocol] as readonly string[]).includes(scheme);
}
