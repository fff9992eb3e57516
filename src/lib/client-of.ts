import { isIPv6 } from 'node:net';
import { canonicalAddress } from './address.ts';

const MAX_LENGTH = 64;

/** Client that an address is counted for: the address, or for IPv6 its /64, which one customer has. */
export function clientOf(address: string): string {
  // a proxy may send any text
  if (!isIPv6(address)) return address.slice(0, MAX_LENGTH);
  const [unscoped = ''] = address.split('%');
  const canonical = canonicalAddress(unscoped);
  if (!isIPv6(canonical)) return canonical;
  const [head = '', tail] = canonical.split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  while (groups.length + rest.length < 8) groups.push('0');
  return `${[...groups, ...rest].slice(0, 4).join(':')}::/64`;
}
