import type { IncomingMessage } from 'node:http';
import { isIP, type BlockList } from 'node:net';
import { includes } from '../../protocols/tcp.ts';

/**
 * Who a request really comes from: the nearest address in `X-Forwarded-For` that none of our own proxies has, each of
 * which tells who came to it.
 * @param proxies networks of those that are believed
 */
export function forwardedClient({ socket, headers }: IncomingMessage, proxies: BlockList | undefined): string {
  let client = socket.remoteAddress ?? '';
  if (proxies === undefined) return client;
  const told = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((address) => address.trim());
  for (const address of told.reverse()) {
    if (isIP(address) === 0 || !includes(proxies, client)) break;
    client = address;
  }
  return client;
}
