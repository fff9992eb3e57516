import type { IncomingMessage } from 'node:http';
import { Http2ServerResponse } from 'node:http2';
import { isIP } from 'node:net';
import type { HttpResponse } from '../protocols/http.ts';
import { urlWithoutReport } from '../quality/carried-report.ts';
import { urlWithPort, type AccessRequest } from './request.ts';

/** How a request over HTTP came here. */
export interface Via {
  /** The client's own address, as reported by trusted proxies. */
  readonly ip: string;
  /** Whether such a proxy sent it. */
  readonly viaProxy?: boolean;
}

/** Ports that URLs leave out (RFC 9110 section 4.2, RFC 6455 section 3). */
const STANDARD_PORT = { plain: 80, secure: 443 };
const PORT = /^\d{1,5}$/;
const BEARER = /^Bearer +(\S+) *$/i;

/**
 * Parts of a request that do not depend on its route, for HTTP and upgrades to WebSocket.
 * @param scheme without `s`, which TLS adds
 */
export function httpAccess(
  request: IncomingMessage,
  via: Via,
  scheme: 'http' | 'ws' = 'http',
): Pick<AccessRequest, 'url' | 'isPortAssumed' | 'client' | 'bearer'> {
  const { headers, socket } = request;
  const { remoteAddress = '', remotePort = 0, localPort = 0 } = socket;
  return {
    ...urlOf(request, via.viaProxy === true, scheme),
    client: {
      address: remoteAddress,
      port: remotePort,
      realAddress: realAddress(headers, via),
      userAgent: headers['user-agent'],
      localPort,
    },
    ...bearerOf(headers),
  };
}

/** Encoders send an empty token where they were given none. */
function bearerOf({ authorization }: IncomingMessage['headers']): Pick<AccessRequest, 'bearer'> {
  const token = BEARER.exec(authorization ?? '')?.[1];
  return token === undefined ? {} : { bearer: token };
}

/** The URL that the client used, without a report of its playback: as reported by a trusted proxy, where there is one. */
function urlOf({ headers, socket, url = '' }: IncomingMessage, viaProxy: boolean, scheme: 'http' | 'ws') {
  const reported = (name: string): string | undefined => (viaProxy ? last(headers[`x-forwarded-${name}`]) : undefined);
  const protocol = reported('proto');
  const isSecure = protocol === undefined ? 'encrypted' in socket : /^(?:http|ws)s$/i.test(protocol);
  const authority = reported('host') ?? headers.host ?? String(headers[':authority'] ?? '');
  const port = reported('port');
  const standard = protocol === undefined ? undefined : STANDARD_PORT[isSecure ? 'secure' : 'plain'];
  const isPortReported = port !== undefined && PORT.test(port);
  const given = urlWithPort(
    `${scheme}${isSecure ? 's' : ''}://${authority}${urlWithoutReport(url)}`,
    isPortReported ? Number(port) : (standard ?? socket.localPort ?? 0),
  );
  return isPortReported ? { url: given.url } : given;
}

/** X-Real-IP is for proxies that send no X-Forwarded-For: others may pass on what a client made up. */
function realAddress(headers: IncomingMessage['headers'], { ip, viaProxy }: Via): string {
  const real = viaProxy === true && headers['x-forwarded-for'] === undefined ? last(headers['x-real-ip']) : undefined;
  return real !== undefined && isIP(real) !== 0 ? real : ip;
}

/** Value that the nearest proxy added. */
function last(header: string | string[] | undefined): string | undefined {
  const value = header === undefined ? '' : (String(header).split(',').at(-1) as string).trim();
  return value === '' ? undefined : value;
}

/** Parts of a response that report its end. */
type Closable = Pick<HttpResponse, 'destroyed' | 'once'>;

/** Whether a response is over: it has been sent, or its client has left. */
export function isClosed(response: Closable): boolean {
  // that of HTTP/2 does not say so itself
  return response instanceof Http2ServerResponse ? response.stream.destroyed : response.destroyed;
}

/** Aborts when the client of a response leaves before its end. */
export function goneSignal(response: Closable): AbortSignal {
  const gone = new AbortController();
  if (isClosed(response)) gone.abort();
  else response.once('close', () => gone.abort());
  return gone.signal;
}
