import type { ProviderKind } from './counters.ts';

/** Values of `sourceType` of the management API. */
export const SOURCE_TYPES = [
  'WebRTC',
  'Ovt',
  'Rtmp',
  'RtmpPull',
  'Rtsp',
  'RtspPull',
  'Transcoder',
  'SRT',
  'MPEGTS',
  'Scheduled',
  'Multiplex',
  'File',
  'Unknown',
] as const;
type SourceType = (typeof SOURCE_TYPES)[number];

/** The socket of a sender as the management API shows it: local is this server's side. */
export interface Connection {
  readonly transport: 'UDP' | 'TCP' | 'SRT' | 'TURN';
  readonly protocol: 'UDP' | 'TCP' | 'SRT';
  readonly localAddress?: string;
  readonly localPort?: number;
  readonly remoteAddress?: string;
  readonly remotePort?: number;
}

/** Where the packets of an input stream come from. */
export interface Source {
  readonly type: SourceType;
  readonly kind: ProviderKind;
  /** Whether this server connected to the source, and not the other way round. */
  readonly isPulled?: boolean;
  readonly url?: string;
  /** Asked at each call of the API, for a connection can move; absent for sources without one. */
  readonly connection?: () => Connection | undefined;
}
