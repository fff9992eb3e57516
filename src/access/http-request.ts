import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import { withPort, type AccessRequest } from './request.ts';

/**
 * What is the same of every request over HTTP, upgrades to WebSocket included.
 * @param realAddress what proxies that are believed tell of the client
 * @param scheme without `s`, which TLS adds
 */
export function httpAccess(
  { headers, socket, url = '' }: IncomingMessage,
  realAddress: string,
  scheme: 'http' | 'ws' = 'http',
): Pick<AccessRequest, 'url' | 'client'> {
  const { remoteAddress = '', remotePort = 0, localPort = 0 } = socket;
  const authority = headers.host ?? String(headers[':authority'] ?? '');
  return {
    url: withPort(`${scheme}${'encrypted' in socket ? 's' : ''}://${authority}${url}`, localPort),
    client: {
      address: remoteAddress,
      port: remotePort,
      realAddress,
      userAgent: headers['user-agent'],
      localPort,
    },
  };
}

/** Aborted when the client of a response goes away before it has ended. */
export function goneSignal(response: ServerResponse | Http2ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  else response.once('close', () => gone.abort());
  return gone.signal;
}
