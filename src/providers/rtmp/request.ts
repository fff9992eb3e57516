import { urlWithPort, type AccessRequest, type PlayRequest, type PublishRequest } from '../../access/request.ts';
import type { Source } from '../../core/source.ts';
import type { KilnError } from '../../errors.ts';
import type { AmfObject, AmfValue } from '../../protocols/rtmp/amf-value.ts';
import type { Peer } from '../../protocols/tcp.ts';
import type { PlayerAbility } from '../../protocols/rtmp/play.ts';
import { playedNames, readAddress, streamName, type PublishAddress } from './address.ts';
import { abilityOf, canReconnect } from './capabilities.ts';

/** Properties of a client, from its `connect` command. */
export interface RtmpClient {
  readonly peer: Peer;
  readonly address: PublishAddress;
  readonly tcUrl: string;
  readonly flashVer: string;
  /** Whether it can be asked to reconnect (Enhanced RTMP). */
  readonly reconnects: boolean;
  /** Codecs and forms that the client takes as a player. */
  readonly ability: PlayerAbility;
}

/** Characters; longer URLs are cut. */
const MAX_URL = 4096;
const MAX_VERSION = 255;
/** Status of the errors by which guards refuse. */
const UNAUTHORIZED = 401;

/** Properties of a client. @param object of its `connect` @param extended Enhanced RTMP is offered */
export function clientOf(peer: Peer, object: AmfObject, extended: boolean): RtmpClient {
  const tcUrl = text(object.tcUrl);
  return {
    peer,
    address: readAddress(tcUrl, text(object.app)),
    tcUrl,
    flashVer: text(object.flashVer),
    reconnects: extended && canReconnect(object),
    ability: abilityOf(object, extended),
  };
}

/**
 * Request for admission of a client. Without a host in its URL, the address that it connected to is requested.
 * @param key argument of `publish`; undefined before that
 */
export function requestOf(client: RtmpClient, key: string | undefined): PublishRequest<'rtmp'> {
  const stream = key === undefined ? '' : streamName(key, client.address);
  return { direction: 'incoming', protocol: 'rtmp', stream, ...placeOf(client, key) };
}

/** Request for admission of a player. @param key argument of `play` */
export function playRequestOf(client: RtmpClient, key: string): PlayRequest {
  return { direction: 'outgoing', protocol: 'rtmp', ...playedNames(key, client.address), ...placeOf(client, key) };
}

function placeOf(
  { peer, address, tcUrl, flashVer }: RtmpClient,
  key: string | undefined,
): Omit<AccessRequest, 'direction' | 'protocol' | 'stream'> {
  const { host, app } = address;
  const base = tcUrl === '' ? `rtmp://${peer.localAddress}/${app}` : tcUrl.slice(0, MAX_URL);
  const mark = key?.indexOf('?') ?? -1;
  return {
    hostName: host === '' ? peer.localAddress : host,
    app,
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

/**
 * Source of a stream that a client publishes.
 * @param names that it was admitted with
 * @param secure the client uses TLS
 */
export function sourceOf(
  { peer, address }: RtmpClient,
  { app, stream }: { readonly app: string; readonly stream: string },
  secure: boolean,
): Source {
  const origin = secure ? address.origin.replace(/^rtmp:/, 'rtmps:') : address.origin;
  return {
    type: 'Rtmp',
    kind: 'rtmp',
    url: `${origin}/${app}/${stream}`,
    connection: () => ({ transport: 'TCP', protocol: 'TCP', ...peer }),
  };
}

/** Code of the status for a publisher that is rejected. */
export function refusalStatus({ code, status }: KilnError): `NetStream.Publish.${'BadName' | 'Rejected' | 'Failed'}` {
  if (code === 'streamExists' || code === 'streamNameInvalid') return 'NetStream.Publish.BadName';
  return status === UNAUTHORIZED ? 'NetStream.Publish.Rejected' : 'NetStream.Publish.Failed';
}

/** Reads an argument that is to be a string; an empty one where it is not. */
export function text(value: AmfValue): string {
  return typeof value === 'string' ? value : '';
}
