import { urlWithPort, type PublishRequest } from '../../access/request.ts';
import type { KilnError } from '../../errors.ts';
import type { Peer } from '../../protocols/tcp.ts';
import { streamName, type PublishAddress } from './address.ts';

/** Properties of a client, from its `connect` command. */
export interface RtmpClient {
  readonly peer: Peer;
  readonly address: PublishAddress;
  readonly tcUrl: string;
  readonly flashVer: string;
  /** Whether it can be asked to reconnect (Enhanced RTMP). */
  readonly reconnects: boolean;
}

/** Characters; longer URLs are cut. */
const MAX_URL = 4096;
const MAX_VERSION = 255;
/** Status of the errors by which guards refuse. */
const UNAUTHORIZED = 401;

/**
 * What a client asks for. One that names no host asks for the address that it called.
 * @param key as `publish` brings it; undefined before that
 */
export function requestOf(
  { peer, address, tcUrl, flashVer }: RtmpClient,
  key: string | undefined,
): PublishRequest<'rtmp'> {
  const { host, app } = address;
  const base = tcUrl === '' ? `rtmp://${peer.localAddress}/${app}` : tcUrl.slice(0, MAX_URL);
  const mark = key?.indexOf('?') ?? -1;
  return {
    direction: 'incoming',
    protocol: 'rtmp',
    hostName: host === '' ? peer.localAddress : host,
    app,
    stream: key === undefined ? '' : streamName(key, address),
    query: new URLSearchParams(mark < 0 ? '' : key?.slice(mark)),
    ...urlWithPort(key ? `${base.replace(/\/$/, '')}/${key.slice(0, MAX_URL)}` : base, peer.localPort),
    client: {
      address: peer.remoteAddress,
      port: peer.remotePort,
      realAddress: peer.remoteAddress,
      userAgent: flashVer === '' ? undefined : flashVer.slice(0, MAX_VERSION),
      localPort: peer.localPort,
    },
  };
}

/** The code of the status that a publisher gets who is refused. */
export function refusalStatus({ code, status }: KilnError): `NetStream.Publish.${'BadName' | 'Rejected' | 'Failed'}` {
  if (code === 'streamExists' || code === 'streamNameInvalid') return 'NetStream.Publish.BadName';
  return status === UNAUTHORIZED ? 'NetStream.Publish.Rejected' : 'NetStream.Publish.Failed';
}
