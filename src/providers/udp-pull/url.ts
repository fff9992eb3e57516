import { isIP, isIPv6 } from 'node:net';
import { hostFromUrl } from '../../lib/address.ts';

/** `udp://[@]address:port[?localaddr=address]`. */
export interface UdpUrl {
  /** A multicast group, or an address of this machine. */
  readonly address: string;
  readonly isGroup: boolean;
  readonly port: number;
  /** Address of the interface that joins the group; undefined for all. */
  readonly localAddress: string | undefined;
}

const MAX_LENGTH = 1024;

/** Reads the URL of a port to receive datagrams on. Returns what is wrong with any other text. */
export function parseUdpUrl(href: string): UdpUrl | string {
  if (href.length > MAX_LENGTH || /[\s\x00-\x1f\x7f]/.test(href) || !URL.canParse(href)) return 'it is not a URL';
  const { protocol, hostname, port, pathname, searchParams, username, password, hash } = new URL(href);
  const address = hostFromUrl(hostname);
  if (protocol !== 'udp:' || isIP(address) === 0 || port === '' || port === '0')
    return 'it does not name an IP address and a port';
  if (!/^\/*$/.test(pathname) || username !== '' || password !== '' || hash !== '')
    return 'it has more than an address, a port and a query';
  const [other] = [...searchParams.keys()].filter((key) => key !== 'localaddr');
  if (other !== undefined) return `${other} is not an option of UDP`;
  const localAddress = searchParams.get('localaddr') ?? undefined;
  const isGroup = isMulticast(address);
  if (localAddress !== undefined && isIPv6(localAddress) !== isIPv6(address))
    return 'localaddr is not an IP address of the same family';
  if (localAddress !== undefined && isIP(localAddress) === 0) return 'localaddr is not an IP address';
  if (localAddress !== undefined && !isGroup) return 'localaddr is for multicast groups alone';
  return { address, isGroup, port: Number(port), localAddress };
}

function isMulticast(address: string): boolean {
  return isIPv6(address) ? /^ff/i.test(address) : /^2(?:2[4-9]|3\d)\./.test(address);
}
