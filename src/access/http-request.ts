import type { IncomingMessage, ServerResponse } from 'node:http';
import { Http2ServerResponse } from 'node:http2';
import { isIP } from 'node:net';
import { urlWithPort, type AccessRequest } from './request.ts';

/** How a request over HTTP came here. */
export interface Via {
  /** The client's own address, as the proxies that are believed tell it. */
  readonly ip: string;
  /** Whether such a proxy sent it. */
  readonly viaProxy?: boolean;
}

/** Ports that URLs leave out (RFC 9110 section 4.2, RFC 6455 section 3). */
const STANDARD_PORT = { plain: 80, secure: 443 };
const PORT = /^\d{1,5}$/;

/**
 * What is the same of every request over HTTP, upgrades to WebSocket included.
 * @param scheme without `s`, which TLS adds
 */
export function httpAccess(
  request: IncomingMessage,
  via: Via,
  scheme: 'http' | 'ws' = 'http',
): Pick<AccessRequest, 'url' | 'isPortAssumed' | 'client'> {
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
  };
}

/** The URL that the client used: before a proxy in between, as far as that tells it. */
function urlOf({ headers, socket, url = '' }: IncomingMessage, viaProxy: boolean, scheme: 'http' | 'ws') {
  const told = (name: string): string | undefined => (viaProxy ? last(headers[`x-forwarded-${name}`]) : undefined);
  const protocol = told('proto');
  const isSecure = protocol === undefined ? 'encrypted' in socket : /^(?:http|ws)s$/i.test(protocol);
  const authority = told('host') ?? headers.host ?? String(headers[':authority'] ?? '');
  const port = told('port');
  const standard = protocol === undefined ? undefined : STANDARD_PORT[isSecure ? 'secure' : 'plain'];
  const isTold = port !== undefined && PORT.test(port);
  const given = urlWithPort(
    `${scheme}${isSecure ? 's' : ''}://${authority}${url}`,
    isTold ? Number(port) : (standard ?? socket.localPort ?? 0),
  );
  return isTold ? { url: given.url } : given;
}

/** X-Real-IP is for proxies that send no X-Forwarded-For: others may pass on what a client made up. */
function realAddress(headers: IncomingMessage['headers'], { ip, viaProxy }: Via): string {
  const real = viaProxy === true && headers['x-forwarded-for'] === undefined ? last(headers['x-real-ip']) : undefined;
  return real !== undefined && isIP(real) !== 0 ? real : ip;
}

/** What the nearest proxy added. */
function last(header: string | string[] | undefined): string | undefined {
  const value = header === undefined ? '' : (String(header).split(',').at(-1) as string).trim();
  return value === '' ? undefined : value;
}

/** Whether a response is over: it has been sent, or its client has left. */
export function isClosed(response: ServerResponse | Http2ServerResponse): boolean {
  // that of HTTP/2 does not say so itself
  return response instanceof Http2ServerResponse ? response.stream.destroyed : response.destroyed;
}

/** Aborted when the client of a response goes away before it has ended. */
export function goneSignal(response: ServerResponse | Http2ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (isClosed(response)) gone.abort();
  else response.once('close', () => gone.abort());
  return gone.signal;
}
