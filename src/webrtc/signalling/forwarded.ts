import type { IncomingMessage } from 'node:http';
import { isIP, type BlockList } from 'node:net';
import { all } from '@fastify/proxy-addr';
import type { Via } from '../../access/http-request.ts';
import { includes } from '../../protocols/tcp.ts';

/**
 * Real client address of a request: the last one in `X-Forwarded-For` that is not of a trusted proxy, as Fastify finds it for
 * other requests.
 * @param proxies networks of trusted proxies
 */
export function forwarded(request: IncomingMessage, proxies: BlockList | undefined): Via {
  const { remoteAddress = '' } = request.socket;
  if (!includes(proxies, remoteAddress)) return { ip: remoteAddress };
  const addresses = all(request, (address) => includes(proxies, address));
  return { ip: addresses.findLast((address) => isIP(address) !== 0) ?? remoteAddress, viaProxy: true };
}
