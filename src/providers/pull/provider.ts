import type { ApplicationConfig } from '../../config/model.ts';
import type { Source } from '../../core/source.ts';
import { PullError } from './error.ts';
import { knownScheme, namesPlaylist, schemeOf } from './schemes.ts';

/** Provider that pulls the streams of one scheme into an application. */
export interface PullProvider {
  readonly source: Pick<Source, 'type' | 'kind'>;
  /** Name in Server.xml. */
  readonly name: string;
  readonly isEnabled: boolean;
  /** Streams at once; 0: any number. */
  readonly maxConnections: number;
  /** Whether a new stream takes its name over from the stream that uses it. */
  readonly replaces: boolean;
  /** Whether streams keep their sources' times (`TimestampMode` Original). */
  readonly keepsTimes: boolean;
}

/**
 * Returns the provider of the URLs, if the application enables it.
 * @throws PullError when nothing pulls such URLs, or the application does not enable what does
 */
export function enabledProvider(config: ApplicationConfig, urls: readonly string[]): PullProvider {
  knownScheme(urls[0] ?? '');
  const provider = pullProvider(config, urls);
  if (provider.isEnabled) return provider;
  throw new PullError(
    `the ${provider.name} provider is off: the application has no <${provider.name}/> in its Providers`,
  );
}

/** @param urls all of one scheme */
export function pullProvider(
  { providers: { ovt, rtspPull, rtmpPull, srt, mpegts, webrtc } }: ApplicationConfig,
  urls: readonly string[],
): PullProvider {
  switch (schemeOf(urls[0] ?? '')) {
    case 'ovt':
      return { source: { type: 'Ovt', kind: 'ovt' }, name: 'OVT', replaces: false, ...common(ovt) };
    case 'rtmp':
    case 'rtmps': {
      const replaces = rtmpPull?.blockDuplicateStreamName === false;
      return { source: { type: 'RtmpPull', kind: 'rtmppull' }, name: 'RTMPPull', replaces, ...common(rtmpPull) };
    }
    case 'udp':
    case 'http':
    case 'https': {
      // the API has no name for HLS
      const source = namesPlaylist(urls[0] ?? '')
        ? ({ type: 'Unknown', kind: 'hlspull' } as const)
        : ({ type: 'MPEGTS', kind: 'mpegts' } as const);
      return { source, name: 'MPEGTS', replaces: false, ...common(mpegts) };
    }
    case 'whep':
    case 'wheps':
      return { source: { type: 'WebRTC', kind: 'webrtc' }, name: 'WebRTC', replaces: false, ...common(webrtc) };
    case 'srt': {
      const replaces = srt?.blockDuplicateStreamName === false;
      return { source: { type: 'SRT', kind: 'srt' }, name: 'SRT', replaces, ...common(srt) };
    }
    default: {
      const replaces = rtspPull?.blockDuplicateStreamName === false;
      return { source: { type: 'RtspPull', kind: 'rtsppull' }, name: 'RTSPPull', replaces, ...common(rtspPull) };
    }
  }
}

function common(
  provider: ApplicationConfig['providers']['ovt'],
): Pick<PullProvider, 'isEnabled' | 'maxConnections' | 'keepsTimes'> {
  return {
    isEnabled: provider !== undefined,
    maxConnections: provider?.maxConnection ?? 0,
    keepsTimes: provider?.timestampMode === 'Original',
  };
}
