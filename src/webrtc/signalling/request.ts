import type { AccessRequest } from '../../access/request.ts';
import { kilnError, type KilnError } from '../../errors.ts';

/** Request of a peer, over HTTP or WebSocket. */
export interface PeerRequest extends Omit<AccessRequest, 'direction' | 'protocol' | 'vhostName'> {
  /** Scheme, host and port as the peer wrote them. */
  readonly origin: string;
}

/** Direction of media by `direction` of a URL, with the values of WHIP and WHEP and of the WebSocket signalling. */
export function directionOf(query: URLSearchParams): AccessRequest['direction'] {
  const direction = query.get('direction');
  return direction === 'whip' || direction === 'send' ? 'incoming' : 'outgoing';
}

export function hasDirection(query: URLSearchParams): boolean {
  return query.has('direction');
}

export function accessOf(peer: PeerRequest, direction: AccessRequest['direction']): AccessRequest {
  return { ...peer, direction, protocol: 'webrtc' };
}

/** Error for a peer on a port that does not serve this direction. */
export function unavailable(direction: AccessRequest['direction']): KilnError {
  return kilnError(direction === 'incoming' ? 'webrtcIngestUnavailable' : 'webrtcPlayUnavailable');
}
