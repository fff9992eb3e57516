import type { AccessRequest } from '../../access/request.ts';

/** What a peer's URL and host name ask for, whatever it signals with. */
export interface PeerRequest extends Omit<AccessRequest, 'direction' | 'protocol' | 'vhostName'> {
  /** Scheme, host and port as the peer wrote them. */
  readonly origin: string;
}

/** Which way media goes, as `direction` in a URL says it: words of WHIP and WHEP, and those of the WebSocket signalling. */
export function isIngest({ query }: PeerRequest): boolean {
  const direction = query.get('direction');
  return direction === 'whip' || direction === 'send';
}

/** Whether the URL says which way. */
export function hasDirection({ query }: PeerRequest): boolean {
  return query.has('direction');
}
