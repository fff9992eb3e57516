import type { BindConfig } from '../../config/model.ts';
import type { PortsOf } from './guard.ts';

/** Ports of a range that are tried. */
const MAX_OF_RANGE = 8;

/** The ports on which a server takes the clients of each module: a client behind a balancer may have used any of them. */
export function configuredPorts({ providers, publishers }: BindConfig): PortsOf {
  const incoming: Readonly<Record<string, readonly number[]>> = {
    rtmp: ports(providers.rtmp),
    rtsp: ports(providers.rtsp),
    srt: portsOfRanges(providers.srt?.port),
    webrtc: ports(providers.webrtc?.signalling),
  };
  const outgoing: Readonly<Record<string, readonly number[]>> = {
    webrtc: ports(publishers.webrtc?.signalling),
    llhls: ports(publishers.llhls),
    hlsv3: ports(publishers.hls),
    playback: [...ports(publishers.llhls), ...ports(publishers.hls)],
    thumbnail: ports(publishers.thumbnail),
    srt: portsOfRanges(publishers.srt?.port),
    rtsp: ports(publishers.rtsp),
    ovt: ports(publishers.ovt),
    rtmp: ports(publishers.rtmp),
    flv: ports(publishers.flv),
  };
  return ({ direction, protocol }) => (direction === 'incoming' ? incoming : outgoing)[protocol] ?? [];
}

function ports(bind: { readonly port?: number; readonly tlsPort?: number } | undefined): readonly number[] {
  return [bind?.port, bind?.tlsPort].filter((port) => port !== undefined);
}

function portsOfRanges(ranges: readonly { readonly first: number; readonly last: number }[] = []): readonly number[] {
  return ranges
    .flatMap(({ first, last }) =>
      Array.from({ length: Math.min(last - first + 1, MAX_OF_RANGE) }, (_, index) => first + index),
    )
    .slice(0, MAX_OF_RANGE);
}
