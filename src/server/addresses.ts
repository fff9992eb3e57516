import type { UdpPorts } from '../config/udp-ports.ts';
import type { PortRange } from '../config/values.ts';

/** A plain port and one with TLS; absent: not listening. */
export interface PortPair {
  readonly port?: number;
  readonly tlsPort?: number;
}

/** Ports of an object with more fields. */
export function portsOf({ port, tlsPort }: PortPair): PortPair {
  return { port, tlsPort };
}

/** Listening ports by module; absent: off. */
export interface Addresses {
  /** Ports to publish RTMP to, and to play it from. */
  readonly rtmp?: PortPair;
  readonly rtmpPlay?: PortPair;
  readonly llhls?: PortPair;
  readonly hls?: PortPair;
  /** Ports to play FLV and MPEG-TS over HTTP from. */
  readonly flv?: PortPair;
  readonly webrtc?: PortPair;
  /** Ports of WebRTC publishers' signalling. */
  readonly whip?: PortPair;
  readonly ovt?: number;
  /** Ports to publish SRT to, and to play it from. */
  readonly srt?: readonly PortRange[];
  /** Ports of publishers that bond network links. */
  readonly srtla?: readonly PortRange[];
  readonly srtPlay?: readonly PortRange[];
  /** Ports to publish RTSP to, and to play it from. */
  readonly rtsp?: PortPair;
  readonly rtspPlay?: PortPair;
  /** Ports that receive MPEG-TS over UDP. */
  readonly mpegts?: readonly UdpPorts[];
  /** ICE candidates, as `port/protocol`. */
  readonly ice: readonly string[];
  readonly api?: PortPair;
  /** Port of `/metrics` without credentials. */
  readonly metrics?: number | undefined;
}
