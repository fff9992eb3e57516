import type { IncomingMessage } from 'node:http';
import { isIP, type BlockList } from 'node:net';
import type { Via } from '../../access/http-request.ts';
import { includes } from '../../protocols/tcp.ts';

/**
 * How a request came here, and who it really comes from: the nearest address in `X-Forwarded-For` that none of our own proxies has, each of
 * which tells who came to it.
 * @param proxies networks of those that are believed
 */
export function forwarded({ socket, headers }: IncomingMessage, proxies: BlockList | undefined): Via {
  const { remoteAddress = '' } = socket;
  if (!includes(proxies, remoteAddress)) return { ip: remoteAddress };
  let client = remoteAddress;
  const told = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((address) => address.trim());
  for (const address of told.reverse()) {
    if (isIP(address) === 0 || !includes(proxies, client)) break;
    client = address;
  }
  return { ip: client, viaProxy: true };
}
