import { hostFromUrl } from '../lib/address.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../protocols/outbound/fragment.ts';
import type { Credentials } from '../protocols/rtmp/publisher-authentication.ts';
import { parseRtspUrl, RTSP_PORT } from '../protocols/rtsp/url.ts';
import { SRT_PORT } from '../protocols/srt/call-url.ts';
import { SrtError } from '../protocols/srt/error.ts';
import { readSrtQuery, withWholeQuery } from '../protocols/srt/query.ts';
import { isToken, parseEndpointUrl, type EndpointUrl } from '../webrtc/call/url.ts';
import { PushError } from './error.ts';
import { readUdpOptions } from './udp-options.ts';

/** Schemes that the URLs of each push protocol may have. */
const SCHEMES = {
  rtmp: ['rtmp', 'rtmps'],
  mpegts: ['udp', 'tcp'],
  srt: ['srt'],
  rtsp: ['rtsp'],
  whip: ['whip', 'whips'],
} as const;

export type PushProtocol = keyof typeof SCHEMES;
type Scheme = (typeof SCHEMES)[PushProtocol][number];

const PORTS: Readonly<Record<Scheme, number>> = {
  rtmp: 1935,
  rtmps: 443,
  udp: 4000,
  tcp: 4000,
  srt: SRT_PORT,
  rtsp: RTSP_PORT,
  whip: 80,
  whips: 443,
};

export interface Destination {
  readonly protocol: PushProtocol;
  readonly scheme: Scheme;
  readonly url: URL;
  readonly host: string;
  readonly port: number;
  /** Empty for protocols without stream keys. */
  readonly streamKey: string;
}

/** Finds a protocol by its name in any case; undefined for an unknown one. */
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
  if (scheme === 'srt') checkSrtQuery(url);
  if (scheme === 'udp') readUdpOptions(url);
  if (protocol === 'rtmp') credentialsOf(url);
  if (scheme === 'rtsp') checkRtsp(href);
  if (protocol === 'whip') whipEndpoint(href, streamKey);
  const port = url.port === '' ? PORTS[scheme] : Number(url.port);
  return { protocol, scheme, url, host: hostFromUrl(url.hostname), port, streamKey };
}

/**
 * Endpoint of WHIP that a URL names.
 * @param streamKey bearer token; where it is empty, the URL may have one before its host
 * @throws PushError when it is no such URL, or the token cannot be sent
 */
export function whipEndpoint(href: string, streamKey: string): EndpointUrl {
  const endpoint = parseEndpointUrl(href, 'whip');
  if (endpoint === undefined) throw new PushError('Could not parse url');
  if (streamKey === '') return endpoint;
  if (!isToken(streamKey))
    throw new PushError('streamKey is no bearer token: it has other characters than those of ASCII');
  return { ...endpoint, token: streamKey };
}

/** @throws PushError when it is no URL of RTSP, or asks for another transport than the connection */
function checkRtsp(href: string): void {
  const parsed = parseRtspUrl(href);
  if (parsed === undefined) throw new PushError('Could not parse url');
  if (parsed.transport === 'udp') throw new PushError('Unsupported transport: RTSP is pushed over TCP');
}

/** @throws PushError when an option is none of libsrt's, or Kiln would not be the one that calls */
function checkSrtQuery(url: URL): void {
  let mode: string;
  try {
    ({ mode } = readSrtQuery(url));
  } catch (error) {
    throw error instanceof SrtError ? new PushError(`Could not parse url: ${error.message}`) : error;
  }
  if (mode !== 'caller') throw new PushError('Unsupported connection mode');
}

/**
 * Destination of a server's request to reconnect (Enhanced RTMP v2, "Reconnect Request").
 * @param tcUrl relative to the destination's; undefined for the same one
 * @throws PushError for an invalid destination, or one without TLS after one with it
 */
export function movedDestination(destination: Destination, tcUrl: string | undefined): Destination {
  const { protocol, scheme, url, streamKey } = destination;
  if (tcUrl === undefined) return destination;
  if (!URL.canParse(tcUrl, url.href)) throw new PushError('Could not parse url');
  const moved = readDestination(protocol, new URL(tcUrl, url.href).href, streamKey);
  if (scheme === 'rtmps' && moved.scheme !== scheme) throw new PushError('the new address has no TLS');
  return moved;
}

/** Application in the URL of an RTMP server, with the query, without a trailing slash. */
export function appOf({ pathname, search }: URL): string {
  return (pathname + search).replace(/^\/+/, '').replace(/\/$/, '');
}

/** User and password of an RTMP URL; undefined without a user. @throws PushError when they are badly escaped */
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
