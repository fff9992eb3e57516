import type { IncomingMessage } from 'node:http';
import { isIP, type BlockList } from 'node:net';
import type { Via } from '../../access/http-request.ts';
import { includes } from '../../protocols/tcp.ts';

/**
 * Real client address of a request: the last one in `X-Forwarded-For` that is not of a trusted proxy.
 * @param proxies networks of trusted proxies
 */
export function forwarded({ socket, headers }: IncomingMessage, proxies: BlockList | undefined): Via {
  const { remoteAddress = '' } = socket;
  if (!includes(proxies, remoteAddress)) return { ip: remoteAddress };
  let client = remoteAddress;
  const addresses = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((address) => address.trim());
  for (const address of addresses.reverse()) {
    if (isIP(address) === 0 || !includes(proxies, client)) break;
    client = address;
  }
  return { ip: client, viaProxy: true };
}
