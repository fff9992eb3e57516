import type { AccessRequest } from '../../access/request.ts';
import { kilnError, type KilnError } from '../../errors.ts';

/** What a peer's URL and host name ask for, whatever it signals with. */
export interface PeerRequest extends Omit<AccessRequest, 'direction' | 'protocol' | 'vhostName'> {
  /** Scheme, host and port as the peer wrote them. */
  readonly origin: string;
}

/** Which way media goes, as `direction` in a URL says it: words of WHIP and WHEP, and those of the WebSocket signalling. */
export function directionOf(query: URLSearchParams): AccessRequest['direction'] {
  const direction = query.get('direction');
  return direction === 'whip' || direction === 'send' ? 'incoming' : 'outgoing';
}

/** Whether the URL says which way. */
export function hasDirection(query: URLSearchParams): boolean {
  return query.has('direction');
}

/** What is to be admitted. */
export function accessOf(peer: PeerRequest, direction: AccessRequest['direction']): AccessRequest {
  return { ...peer, direction, protocol: 'webrtc' };
}

/** Why a peer is refused on a port that has nothing for this direction. */
export function unavailable(direction: AccessRequest['direction']): KilnError {
  return kilnError(direction === 'incoming' ? 'webrtcIngestUnavailable' : 'webrtcPlayUnavailable');
}
