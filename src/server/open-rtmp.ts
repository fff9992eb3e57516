import { blockList } from '../config/networks.ts';
import { hasSuccessor } from '../providers/rtmp/hand-over.ts';
import { RtmpServer } from '../providers/rtmp/server.ts';
import { RtmpPublisher } from '../publishers/rtmp/index.ts';
import { portsOf } from './addresses.ts';
import type { Listener, ListenerContext } from './listeners.ts';
import { portGroups } from './port-groups.ts';

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
    for (const { port, tlsPort, publishes, plays } of portGroups(toPublish, toPlay)) {
      const tls = tlsPort === undefined ? undefined : { port: tlsPort, certificates };
      const served = { publishes, players: plays ? players : undefined };
      yield { component: await RtmpServer.listen({ ...common, ...served, host, port, tls }), addresses };
    }
  }
}
