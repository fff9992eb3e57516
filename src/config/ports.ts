import type { Transport } from '../lib/address.ts';
import type { ServerConfig, WebrtcBindConfig } from './model.ts';
import { elementPath } from './names.ts';
import type { Path, Problem } from './resolve.ts';
import { Server } from './elements/server.ts';
import type { PortRange } from './values.ts';
import { overlap, type UdpPorts } from './udp-ports.ts';

interface Listener extends UdpPorts {
  readonly path: Path;
  readonly transport: Transport;
  /** Kind of listeners that may share one port. */
  readonly shared?: 'http' | 'https' | 'ice' | 'rtsp' | 'rtsps' | 'rtmp' | 'rtmps';
}

/** Ports that two modules ask for which cannot share them. */
export function portProblems(config: ServerConfig): Problem[] {
  const taken: Listener[] = [];
  const problems: Problem[] = [];
  for (const listener of listeners(config)) {
    const other = taken.find((candidate) => conflict(candidate, listener));
    taken.push(listener);
    if (other === undefined) continue;
    const port = Math.max(listener.first, other.first);
    const where = elementPath('Server', Server, other.path);
    const message = `"${port}" is also the ${listener.transport.toUpperCase()} port of ${where}`;
    problems.push({ path: listener.path, message });
  }
  return problems;
}

export function ownPorts(config: ServerConfig, wanted: Transport): number[] {
  return [...listeners(config)]
    .filter(({ transport }) => transport === wanted)
    .flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, index) => first + index));
}

/** First element that names a port, such as `Bind/Providers/RTMP/Port`; undefined when none does. */
export function listenerElement(config: ServerConfig, transport: Transport, port: number): string | undefined {
  const isIt = (one: Listener): boolean => one.transport === transport && one.first <= port && port <= one.last;
  const found = [...listeners(config)].find(isIt);
  return found && elementPath('', Server, found.path).slice(1);
}

function conflict(one: Listener, other: Listener): boolean {
  if (one.transport !== other.transport || !overlap(one, other)) return false;
  return one.shared === undefined || one.shared !== other.shared;
}

function* listeners({ bind, cluster }: ServerConfig): Iterable<Listener> {
  const { managers, providers, publishers } = bind;
  yield* secured(['bind', 'managers', 'api'], managers.api);
  yield* tcp(['bind', 'managers', 'metrics'], managers.metrics);
  yield* rtmp(['bind', 'providers', 'rtmp'], providers.rtmp);
  yield* rtsp(['bind', 'providers', 'rtsp'], providers.rtsp);
  yield* udp(['bind', 'providers', 'srt'], providers.srt);
  yield* udp(['bind', 'providers', 'srt', 'srtla'], providers.srt?.srtla);
  yield* udp(['bind', 'providers', 'mpegts'], providers.mpegts);
  yield* webrtc(['bind', 'providers', 'webrtc'], providers.webrtc);
  yield* tcp(['bind', 'publishers', 'ovt'], publishers.ovt);
  for (const name of ['llhls', 'hls', 'thumbnail', 'flv'] as const) {
    yield* http(['bind', 'publishers', name], publishers[name]);
  }
  yield* webrtc(['bind', 'publishers', 'webrtc'], publishers.webrtc);
  yield* udp(['bind', 'publishers', 'srt'], publishers.srt);
  yield* rtsp(['bind', 'publishers', 'rtsp'], publishers.rtsp);
  yield* rtmp(['bind', 'publishers', 'rtmp'], publishers.rtmp);
  yield* tcp(['cluster', 'node'], cluster?.node);
  yield* tcpPort(['cluster', 'node', 'agentCheckPort'], cluster?.node.agentCheckPort);
}

function* tcp(path: Path, bind: { readonly port?: number } | undefined): Iterable<Listener> {
  yield* tcpPort([...path, 'port'], bind?.port);
}

function* tcpPort(path: Path, port: number | undefined): Iterable<Listener> {
  if (port !== undefined) yield { path, transport: 'tcp', first: port, last: port };
}

function* udp(path: Path, bind: { readonly port?: readonly UdpPorts[] } | undefined): Iterable<Listener> {
  for (const range of bind?.port ?? []) yield { path: [...path, 'port'], transport: 'udp', ...range };
}

interface SecuredPorts {
  readonly port?: number;
  readonly tlsPort?: number;
}

function* secured(path: Path, bind: SecuredPorts = {}): Iterable<Listener> {
  for (const key of ['port', 'tlsPort'] as const) yield* tcpPort([...path, key], bind[key]);
}

function* http(path: Path, bind: SecuredPorts | undefined): Iterable<Listener> {
  yield* sharing('http', 'https', path, bind);
}

function* rtmp(path: Path, bind: SecuredPorts | undefined): Iterable<Listener> {
  yield* sharing('rtmp', 'rtmps', path, bind);
}

function* sharing(
  plain: Listener['shared'],
  secure: Listener['shared'],
  path: Path,
  bind: SecuredPorts | undefined,
): Iterable<Listener> {
  for (const listener of secured(path, bind))
    yield { ...listener, shared: listener.path.at(-1) === 'port' ? plain : secure };
}

/** Publishers and players of RTSP may share their ports. */
function* rtsp(
  path: Path,
  bind: (SecuredPorts & { readonly udpPort?: readonly PortRange[] }) | undefined,
): Iterable<Listener> {
  yield* sharing('rtsp', 'rtsps', path, bind);
  for (const range of bind?.udpPort ?? [])
    yield { path: [...path, 'udpPort'], transport: 'udp', ...range, shared: 'rtsp' };
}

function* webrtc(path: Path, bind: WebrtcBindConfig | undefined): Iterable<Listener> {
  if (bind === undefined) return;
  yield* http([...path, 'signalling'], bind.signalling);
  const { iceCandidate, tcpRelay } = bind.iceCandidates;
  for (const [index, { protocol, first, last }] of iceCandidate.entries()) {
    const at = [...path, 'iceCandidates', 'iceCandidate', index];
    yield { path: at, transport: protocol, first, last, shared: 'ice' };
  }
  for (const [index, { host, port }] of tcpRelay.entries()) {
    // a relay elsewhere has its own ports
    if (host !== '*') continue;
    const at = [...path, 'iceCandidates', 'tcpRelay', index];
    yield { path: at, transport: 'tcp', first: port, last: port, shared: 'ice' };
  }
}
