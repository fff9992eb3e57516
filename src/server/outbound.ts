import type { Cluster, StoreAddress } from '#cluster';
import type { ServerConfig } from '../config/model.ts';
import { blockList } from '../config/networks.ts';
import { ownPorts } from '../config/ports.ts';
import { KeySetError } from '../access/jwt/keys.ts';
import { hostFromUrl, type Transport } from '../lib/address.ts';
import { OutboundGuard } from '../protocols/outbound/guard.ts';
import { PullError } from '../providers/pull/error.ts';
import { PushError } from '../pushing/error.ts';

/** Why clients choose where to connect to, and the element of `Modules` that limits it. */
const PURPOSES = {
  pull: { action: 'pulling from', element: 'Modules/Pull', error: (reason: string) => new PullError(reason) },
  push: { action: 'pushing to', element: 'Modules/Push', error: (reason: string) => new PushError(reason) },
  keys: { action: 'fetching keys from', element: undefined, error: (reason: string) => new KeySetError(reason) },
};

/** Keeps outbound connections to addresses that clients chose away from this server's own cluster. */
export function outboundGuard(config: ServerConfig, cluster: Cluster, purpose: keyof typeof PURPOSES): OutboundGuard {
  const configured = configuredStores(config);
  const { element, ...named } = PURPOSES[purpose];
  const networks = purpose === 'keys' ? undefined : blockList(config.modules[purpose]?.networks);
  return new OutboundGuard({
    ...named,
    nodes: () => cluster.nodes(),
    ports: { tcp: closedPorts(config, purpose, 'tcp'), udp: closedPorts(config, purpose, 'udp') },
    stores: () => [...configured, ...cluster.stores()],
    ...(networks && element && { allowed: { networks, element } }),
  });
}

/** Ports of this server, except those that the purpose may connect to. */
function closedPorts(config: ServerConfig, purpose: keyof typeof PURPOSES, transport: Transport): Set<number> {
  const { providers, publishers } = config.bind;
  const { rtmp, srt, mpegts } = providers;
  const open = {
    pull: { tcp: [publishers.ovt?.port], udp: [] },
    push: { tcp: [rtmp?.port, rtmp?.tlsPort], udp: [...(srt?.port ?? []), ...(mpegts?.port ?? [])].flatMap(numbers) },
    keys: { tcp: [], udp: [] },
  }[purpose];
  const closed = new Set(ownPorts(config, transport));
  for (const port of open[transport]) if (port !== undefined) closed.delete(port);
  return closed;
}

function numbers({ first, last }: { readonly first: number; readonly last: number }): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Addresses in Server.xml of the store, or of its sentinels. */
function configuredStores({ cluster }: ServerConfig): StoreAddress[] {
  const { url, sentinels = [], cluster: endpoints = [] } = cluster?.redis ?? {};
  return [...sentinels, ...endpoints, ...(url === undefined ? [] : [endpointOf(url)])];
}

function endpointOf(url: string): StoreAddress {
  const { hostname, port } = new URL(url);
  return { host: hostFromUrl(hostname), port: port === '' ? 6379 : Number(port) };
}
