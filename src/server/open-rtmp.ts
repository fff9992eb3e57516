import { blockList } from '../config/networks.ts';
import { hasSuccessor } from '../providers/rtmp/hand-over.ts';
import { RtmpServer } from '../providers/rtmp/server.ts';
import { RtmpPublisher } from '../publishers/rtmp/index.ts';
import { portsOf, type PortPair } from './addresses.ts';
import type { Listener, ListenerContext } from './listeners.ts';

/** Ports with the clients that may come to them. */
interface RtmpPorts extends PortPair {
  readonly publishes: boolean;
  readonly plays: boolean;
}

/** Opens the ports of RTMP publishers and players; one port may be for both. */
export async function* openRtmp({
  config,
  registry,
  nodes: { cluster },
  admission: { access },
  certificates,
  log,
}: ListenerContext): AsyncIterable<Listener> {
  const { bind, ip, modules } = config;
  const { rtmp: toPublish } = bind.providers;
  const { rtmp: toPlay } = bind.publishers;
  const players = toPlay && new RtmpPublisher({ registry, access });
  if (players !== undefined) yield { component: players, addresses: { rtmpPlay: portsOf(toPlay ?? {}) } };
  const proxyNetworks = blockList(modules.proxyProtocol?.networks);
  const extended = modules.ertmp.enable;
  const handOver = { registry, hasSuccessor: () => hasSuccessor(cluster) };
  const common = { access, log, proxyNetworks, extended, handOver };
  const addresses = toPublish && { rtmp: portsOf(toPublish) };
  for (const host of ip) {
    for (const { port, tlsPort, publishes, plays } of groups(toPublish, toPlay)) {
      const tls = tlsPort === undefined ? undefined : { port: tlsPort, certificates };
      const served = { publishes, players: plays ? players : undefined };
      yield { component: await RtmpServer.listen({ ...common, ...served, host, port, tls }), addresses };
    }
  }
}

/** Ports for both, for publishers alone, and for players alone. */
function groups(toPublish: PortPair = {}, toPlay: PortPair = {}): RtmpPorts[] {
  const pick = (publishes: boolean, plays: boolean): RtmpPorts => {
    const of = (key: 'port' | 'tlsPort'): number | undefined => {
      const [one, other] = publishes ? [toPublish[key], toPlay[key]] : [toPlay[key], toPublish[key]];
      return (one === other) === (publishes && plays) ? one : undefined;
    };
    return { port: of('port'), tlsPort: of('tlsPort'), publishes, plays };
  };
  const all = [pick(true, true), pick(true, false), pick(false, true)];
  return all.filter(({ port, tlsPort }) => port !== undefined || tlsPort !== undefined);
}
