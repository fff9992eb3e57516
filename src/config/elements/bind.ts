import Type from 'typebox';
import {
  choice,
  contained,
  flag,
  ifSet,
  inert,
  integer,
  optional,
  parsed,
  repeated,
  section,
  text,
  type Fail,
} from '../blocks.ts';
import { unique } from '../rules.ts';
import { readSrtOption } from '../../lib/srt-options.ts';
import { parseUdpPorts } from '../udp-ports.ts';
import { parseIceCandidate, parseIceUrl, type IceCandidate, type PortRange } from '../values.ts';
import { endpoint, networks, portList, portOf } from './shared.ts';

const count = () => integer(undefined, { min: 1, max: 1024 });
const workers = () => ({ workerCount: Type.Optional(inert(count())) });
const threads = () => ({ ...workers(), threadPerSocket: inert(flag(false)) });

const tcp = () => ({ port: Type.Optional(portOf('tcp')) });
const secured = () => ({ ...tcp(), tlsPort: Type.Optional(portOf('tcp')) });
const http = () => ({ ...secured(), ...workers() });

interface Option {
  readonly key: string;
  readonly value: string;
}

const udpPorts = () => parsed('a list of ports (1..65535), such as 4000-4003,239.1.2.3:5000', parseUdpPorts);

/** Socket options of libsrt. Errors never show their values: one is a passphrase. */
const srtOptions = () =>
  contained(
    Type.Object(
      { key: text(), value: text() },
      {
        rule: ({ key, value }: Option, fail: Fail) => {
          const option = readSrtOption(key, value);
          if ('at' in option) fail([option.at], option.message);
        },
      },
    ),
    'Option',
    { rule: (options: Option[], fail: Fail) => unique(options, 'key', [], fail) },
  );

/** Stream as `host/application/stream`, with a playlist where it is to be played. */
const streamPath = () =>
  parsed('a path of host/application/stream', (given) =>
    /^[^/?]+(\/[^/?]+){2,3}(\?.*)?$/.test(given) ? given : undefined,
  );

interface Srt {
  readonly port?: readonly PortRange[];
  readonly streamMap: readonly { readonly port: number }[];
}

/** Ports that pass SRT on from senders with several network links. */
const srtla = () => optional({ port: portList('udp') });

const srt = <More extends object>(more: More) =>
  optional(
    {
      port: Type.Optional(portList('udp')),
      streamMap: contained(Type.Object({ port: portOf('udp'), streamPath: streamPath() }), 'Stream'),
      options: srtOptions(),
      ...more,
    },
    {
      rule: ({ port = [], streamMap }: Srt, fail: Fail) => {
        streamMap.forEach((mapped, index) => {
          const isListened = port.some(({ first, last }) => mapped.port >= first && mapped.port <= last);
          if (!isListened) fail(['streamMap', index, 'port'], `"${mapped.port}" is not one of the ports in Port`);
        });
        unique(streamMap, 'port', ['streamMap'], fail);
      },
    },
  );

const DEFAULT_CANDIDATE: IceCandidate = { address: '*', first: 10000, last: 10000, protocol: 'udp' };

/** Half a day: a client that changes its network must be able to return with the same credentials. */
export const CREDENTIAL_LIFETIME_MS = 43_200_000;

/** Ports of RTP are even, and those of RTCP follow them (RFC 3550 section 11). */
const rtsp = (more: ReturnType<typeof workers> | ReturnType<typeof threads>) =>
  optional(
    { ...secured(), udpPort: Type.Optional(portList('udp')), ...more },
    {
      rule: ({ udpPort = [] }: { udpPort?: readonly PortRange[] }, fail: Fail) => {
        if (udpPort.some(({ first, last }) => first % 2 !== 0 || last % 2 !== 1))
          fail(['udpPort'], 'has to be pairs of an even port and the next, such as 8000-8003');
      },
    },
  );

const iceCandidates = () =>
  section({
    iceCandidate: {
      ...repeated(parsed('an ICE candidate (IP:port[-port]/udp|tcp)', parseIceCandidate)),
      default: [DEFAULT_CANDIDATE],
    },
    tcpRelay: repeated(endpoint()),
    tcpRelayForce: flag(false, { aliases: ['tcpForce'] }),
    /** Secret shared with the relay, for names and passwords of clients. Empty: clients are offered no relay. */
    tcpRelaySecret: Type.Optional(text({ default: '' })),
    enableLinkLocalAddress: flag(false),
    iceWorkerCount: Type.Optional(count()),
    tcpIceWorkerCount: Type.Optional(inert(count())),
    tcpRelayWorkerCount: Type.Optional(inert(count())),
    defaultTransport: choice(['udptcp', 'udp', 'tcp', 'relay', 'all'], 'udptcp'),
  });

interface IceServer {
  readonly userName?: string;
  readonly credential?: string;
  readonly secret?: string;
}

function oneWayIn({ userName, credential, secret }: IceServer, fail: Fail): void {
  if (secret !== undefined && (userName ?? credential) !== undefined)
    fail(['secret'], 'cannot be combined with UserName or Credential, which it replaces');
}

const webrtc = () =>
  optional({
    signalling: section({ ...http(), threadPerSocket: inert(flag(false)) }),
    iceCandidates: iceCandidates(),
    iceServers: contained(
      Type.Object(
        {
          urls: contained(parsed('a URL of stun:, stuns:, turn: or turns:', parseIceUrl), 'Url'),
          userName: Type.Optional(text()),
          credential: Type.Optional(text()),
          /** Secret shared with the server, for names and passwords of clients: replaces UserName and Credential. */
          secret: Type.Optional(text()),
          /** Milliseconds in which a client may begin to use the server with these. */
          lifetime: integer(CREDENTIAL_LIFETIME_MS, { min: 60_000 }),
        },
        { rule: oneWayIn },
      ),
      'IceServer',
    ),
  });

/** Loopback, and the addresses that are not routed on the Internet (RFC 1918, RFC 4193). */
const PRIVATE_NETWORKS = '127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7';

interface Listener {
  port?: unknown;
  tlsPort?: unknown;
  signalling?: Listener;
}

function dropUnbound(bind: Record<string, Record<string, Listener>>): void {
  for (const name of PULLING) delete bind.providers?.[name];
  for (const modules of Object.values(bind)) {
    for (const [name, module] of Object.entries(modules)) {
      const { port, tlsPort } = module.signalling ?? module;
      if (port === undefined && tlsPort === undefined) delete modules[name];
    }
  }
}

/** OvenMediaEngine's stock configuration has elements for pulling providers, too. They listen on nothing. */
const pulling = (xml: string) => optional({ ...tcp(), ...workers() }, { xml, inert: true });
const PULLING = ['ovt', 'rtspc'];

/** Listeners of the server. An element without a port is dropped when the configuration is resolved. */
export const Bind = Type.Object(
  {
    managers: section({
      api: optional(http()),
      /** Metrics without credentials, for Prometheus alone. */
      metrics: optional({ port: Type.Optional(ifSet(portOf('tcp'))) }),
    }),
    providers: section({
      rtmp: optional({ ...secured(), ...threads() }),
      rtsp: rtsp(threads()),
      srt: srt({ srtla: srtla(), ...threads() }),
      mpegts: optional({ port: Type.Optional(udpPorts()), ...threads() }),
      webrtc: webrtc(),
      ovt: pulling('OVT'),
      rtspc: pulling('RTSPC'),
    }),
    publishers: section({
      ovt: optional({ ...tcp(), ...workers(), networks: networks(PRIVATE_NETWORKS) }),
      llhls: optional(http()),
      hls: optional(http()),
      thumbnail: optional(http()),
      webrtc: webrtc(),
      srt: srt(workers()),
      rtsp: rtsp(workers()),
      rtmp: optional({ ...secured(), ...workers() }),
      flv: optional(http()),
    }),
  },
  { complete: dropUnbound },
);
