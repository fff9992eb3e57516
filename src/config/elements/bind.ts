import Type from 'typebox';
import { choice, contained, flag, integer, optional, parsed, repeated, section, text } from '../blocks.ts';
import { parseIceCandidate, type IceCandidate } from '../values.ts';
import { endpoint, networks, portList, portOf } from './shared.ts';

const workers = () => ({ workerCount: Type.Optional(integer(undefined, { min: 1, max: 1024 })) });
const threads = () => ({ ...workers(), threadPerSocket: flag(false) });
/** A listener for HTTP: a plain port, a secure one, or both. */
const http = () => ({ port: Type.Optional(portOf('tcp')), tlsPort: Type.Optional(portOf('tcp')), ...workers() });
const tcp = () => ({ port: Type.Optional(portOf('tcp')) });

const srtOptions = () =>
  contained(Type.Object({ key: parsed('a socket option SRTO_*', srtOption), value: text() }), 'Option');

function srtOption(given: string): string | undefined {
  return /^SRTO_[A-Z0-9]+$/.test(given) ? given : undefined;
}

const srt = () => ({
  port: Type.Optional(portList('udp')),
  streamMap: contained(Type.Object({ port: portOf('udp'), streamPath: text() }), 'Stream'),
  options: srtOptions(),
});

const DEFAULT_CANDIDATE: IceCandidate = { address: '*', first: 10000, last: 10000, protocol: 'udp' };

const iceCandidates = () =>
  section({
    iceCandidate: {
      ...repeated(parsed('an ICE candidate (IP:port[-port]/udp|tcp)', parseIceCandidate)),
      default: [DEFAULT_CANDIDATE],
    },
    tcpRelay: repeated(endpoint()),
    tcpRelayForce: flag(false, { aliases: ['tcpForce'] }),
    enableLinkLocalAddress: flag(false),
    iceWorkerCount: Type.Optional(integer(undefined, { min: 1, max: 1024 })),
    tcpIceWorkerCount: Type.Optional(integer(undefined, { min: 1, max: 1024 })),
    tcpRelayWorkerCount: Type.Optional(integer(undefined, { min: 1, max: 1024 })),
    defaultTransport: choice(['udptcp', 'udp', 'tcp', 'relay', 'all'], 'udptcp'),
  });

const webrtc = () =>
  optional({
    signalling: section({ ...http(), threadPerSocket: flag(false) }),
    iceCandidates: iceCandidates(),
    iceServers: contained(
      Type.Object({
        urls: contained(text(), 'Url'),
        userName: Type.Optional(text()),
        credential: Type.Optional(text()),
      }),
      'IceServer',
    ),
  });

/** Loopback, and the addresses that no router of the Internet knows (RFC 1918, RFC 4193). */
const PRIVATE_NETWORKS = '127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7';

interface Listener {
  port?: unknown;
  tlsPort?: unknown;
  signalling?: Listener;
}

function dropUnbound(bind: Record<string, Record<string, Listener>>): void {
  for (const modules of Object.values(bind)) {
    for (const [name, module] of Object.entries(modules)) {
      const { port, tlsPort } = module.signalling ?? module;
      if (port === undefined && tlsPort === undefined) delete modules[name];
    }
  }
}

/** What listens where. An element without a port is dropped when the configuration is resolved. */
export const Bind = Type.Object({
  managers: section({ api: optional(http()) }),
  providers: section({
    rtmp: optional({ ...tcp(), ...threads() }),
    rtsp: optional({ ...tcp(), ...threads() }),
    srt: optional({ ...srt(), ...threads() }),
    mpegts: optional({ port: Type.Optional(portList('udp')), ...threads() }),
    webrtc: webrtc(),
  }),
  publishers: section({
    ovt: optional({ ...tcp(), ...workers(), networks: networks(PRIVATE_NETWORKS) }),
    llhls: optional(http()),
    hls: optional(http()),
    thumbnail: optional(http()),
    webrtc: webrtc(),
    srt: optional({ ...srt(), ...workers() }),
  }),
}, { complete: dropUnbound });
