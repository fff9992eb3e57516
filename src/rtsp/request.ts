import { urlWithPort, type AccessRequest } from '../access/request.ts';
import type { RequestUrl } from '../protocols/rtsp/request-url.ts';
import type { Peer } from '../protocols/tcp.ts';

const MAX_USER_AGENT = 255;

/** A client, as far as its requests show it. */
export interface RtspClient {
  readonly peer: Peer;
  readonly userAgent: string | undefined;
  /** Name by which it has authenticated itself. */
  readonly user: string | undefined;
  /** Parameters of the query that came as a password. */
  readonly policy: string | undefined;
}

/** Request for admission, of a player or a publisher. */
export type RtspAccess = Omit<AccessRequest, 'direction' | 'protocol'>;

export function requestOf(
  url: RequestUrl,
  { peer, userAgent, user, policy }: RtspClient,
  signal: AbortSignal,
): RtspAccess {
  const { host, app, stream, playlist, href } = url;
  const whole = policy === undefined ? href : `${href}${href.includes('?') ? '&' : '?'}${policy}`;
  return {
    hostName: host,
    app,
    stream,
    playlist,
    query: new URLSearchParams(/\?.*$/.exec(whole)?.[0] ?? ''),
    ...urlWithPort(whole, peer.localPort),
    client: {
      address: peer.remoteAddress,
      port: peer.remotePort,
      realAddress: peer.remoteAddress,
      userAgent: userAgent?.slice(0, MAX_USER_AGENT),
      user,
      localPort: peer.localPort,
    },
    signal,
  };
}
