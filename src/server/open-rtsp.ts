import { blockList } from '../config/networks.ts';
import type { RtspBindConfig } from '../config/model.ts';
import { RtspProvider } from '../providers/rtsp/index.ts';
import { RtspPublisher } from '../publishers/rtsp/index.ts';
import { RtspPorts, type OfferedService, type PortGroup } from '../rtsp/ports.ts';
import type { RtspService } from '../rtsp/part.ts';
import { portsOf, type PortPair } from './addresses.ts';
import type { Listener, ListenerContext } from './listeners.ts';
import { portGroups } from './port-groups.ts';

/** Opens the ports of RTSP publishers and players; one port may be for both. */
export async function* openRtsp({
  config,
  registry,
  admission: { access },
  certificates,
  log,
}: ListenerContext): AsyncIterable<Listener> {
  const { bind, ip, modules } = config;
  const { rtsp: toPublish } = bind.providers;
  const { rtsp: toPlay } = bind.publishers;
  if (toPublish === undefined && toPlay === undefined) return;
  const player = new RtspPublisher({ access, log });
  const provider = new RtspProvider(access);
  yield { component: player };
  const offered = (service: RtspService, served: RtspBindConfig | undefined): OfferedService => ({
    service,
    udpPort: served?.udpPort ?? [],
  });
  const groups = portGroups(toPublish, toPlay).map(({ port, tlsPort, publishes, plays }): PortGroup => ({
    port,
    tlsPort,
    services: [...(plays ? [offered(player, toPlay)] : []), ...(publishes ? [offered(provider, toPublish)] : [])],
  }));
  const proxyNetworks = blockList(modules.proxyProtocol?.networks);
  const component = await RtspPorts.listen({ registry, access, certificates, log, ip, groups, proxyNetworks });
  const shown = (service: RtspService, ports: PortPair | undefined): PortPair | undefined =>
    ports !== undefined && component.isOpen(service) ? portsOf(ports) : undefined;
  const rtsp = shown(provider, toPublish);
  const rtspPlay = shown(player, toPlay);
  yield { component, addresses: { ...(rtsp && { rtsp }), ...(rtspPlay && { rtspPlay }) } };
}
