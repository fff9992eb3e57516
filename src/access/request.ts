import { refusesClear } from '../config/clear-publishers.ts';
import type { ApplicationConfig } from '../config/model.ts';
import { kilnError } from '../errors.ts';

/** The client of a request. */
export interface Client {
  /** Address of the connection: that of an HTTP proxy, or the client's own with PROXY protocol. */
  readonly address: string;
  readonly port: number;
  /** The client's own, as reported by trusted proxies. */
  readonly realAddress: string;
  readonly userAgent?: string | undefined;
  /** Name by which it has authenticated itself, where it has. */
  readonly user?: string | undefined;
  /** Port of this server that the client connected to. */
  readonly localPort: number;
}

/** Names that a client requests, and that a guard may replace. */
export interface Target {
  /** Without port. */
  readonly hostName: string;
  readonly app: string;
  readonly stream: string;
  readonly playlist?: string | undefined;
}

/** Request of a client, by any protocol. */
export interface AccessRequest extends Target {
  readonly direction: 'incoming' | 'outgoing';
  /** As `Enables` of access control names it, in lower case (docs/compatibility.md#control-servers). */
  readonly protocol: IncomingProtocol | OutgoingProtocol;
  /** A virtual host by its own name, where the client or the configuration gives that: looked for before `hostName`. */
  readonly vhostName?: string;
  readonly query: URLSearchParams;
  /** As requested, with an explicit port: it is signed, and sent to control servers. */
  readonly url: string;
  /** Neither the client nor a proxy named the port: `url` has the one that the client is taken to mean. */
  readonly isPortAssumed?: boolean;
  readonly client: Client;
  /** Token of an `Authorization` header (RFC 6750 section 2.1). */
  readonly bearer?: string | undefined;
  /** Aborted when the client leaves. */
  readonly signal?: AbortSignal;
}

export type IncomingProtocol = 'rtmp' | 'rtsp' | 'srt' | 'webrtc' | 'mpegts';
export type OutgoingProtocol =
  | 'webrtc'
  | 'llhls'
  | 'hlsv3'
  | 'playback'
  | 'thumbnail'
  | 'srt'
  | 'ovt'
  | 'rtsp'
  | 'rtmp'
  | 'flv';

export interface PublishRequest<P extends IncomingProtocol = IncomingProtocol> extends AccessRequest {
  readonly direction: 'incoming';
  readonly protocol: P;
}

export interface PlayRequest extends AccessRequest {
  readonly direction: 'outgoing';
  readonly protocol: OutgoingProtocol;
}

/** After a wait: nothing more is done for a client that has left. @throws clientGone */
export function checkPresent(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw kilnError('clientGone');
}

/** As operators know them. */
export const PROTOCOL_NAMES: Readonly<Record<AccessRequest['protocol'], string>> = {
  rtmp: 'RTMP',
  srt: 'SRT',
  webrtc: 'WebRTC',
  mpegts: 'MPEG-TS',
  llhls: 'LL-HLS',
  hlsv3: 'HLS',
  playback: 'playback',
  thumbnail: 'thumbnail',
  ovt: 'OVT',
  rtsp: 'RTSP',
  flv: 'HTTP-FLV',
};

/** The configuration of a publisher module in an application; undefined when it is off, or closed for DRM. */
export function publisherConfig(
  { publishers }: ApplicationConfig,
  protocol: OutgoingProtocol,
): { readonly maxConnection: number; readonly clusterMaxConnection: number } | undefined {
  if (protocol !== 'llhls' && refusesClear(publishers)) return undefined;
  return publishers[protocol === 'hlsv3' ? 'hls' : protocol];
}

const AUTHORITY = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)/i;
const HAS_PORT = /:\d+$/;

/** A requested URL, with the port that the client is taken to mean where it named none. */
export function urlWithPort(url: string, port: number): Pick<AccessRequest, 'url' | 'isPortAssumed'> {
  const [whole = '', scheme = '', authority = ''] = AUTHORITY.exec(url) ?? [];
  if (HAS_PORT.test(authority)) return { url };
  const located = whole === '' ? url : `${scheme}${authority.replace(/:$/, '')}:${port}${url.slice(whole.length)}`;
  return { url: located, isPortAssumed: true };
}
