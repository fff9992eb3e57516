import { createHmac, randomBytes } from 'node:crypto';
import type { ServerConfig } from '../config/model.ts';
import type { IceCandidate } from '../config/values.ts';
import type { Listener, ListenerContext, OpenListeners } from './listeners.ts';
import { secretsOf } from '../config/cluster-secrets.ts';
import { blockList } from '../config/networks.ts';
import { HLS } from '../publishers/hls/ts/index.ts';
import { LLHLS } from '../publishers/hls/ll/index.ts';
import { RelaySource } from '../relay/relay-source.ts';
import { OvtServer } from '../publishers/ovt/server.ts';
import type { HlsForm } from '../publishers/hls/package/hls-form.ts';
import { PlaylistPublisher } from '../publishers/hls/publisher.ts';
import { HttpFlvPublisher } from '../publishers/http-flv/index.ts';
import { SrtPublisher } from '../publishers/srt/index.ts';
import { ThumbnailPublisher } from '../publishers/thumbnail/index.ts';
import { WebrtcPublisher } from '../publishers/webrtc/index.ts';
import { whereSrtIs } from './srt.ts';
import { PlaybackPublisher } from '../playback/index.ts';
import { portsOf } from './addresses.ts';

/** Publishers in the order in which they open. */
export const PUBLISHERS: readonly OpenListeners[] = [
  openRelaySource,
  openFlv,
  openLlhls,
  openHls,
  openWebrtc,
  openThumbnail,
  openPlayback,
  openOvt,
  openSrt,
];

async function* openRelaySource({ config, registry, nodes, streams, log }: ListenerContext): AsyncIterable<Listener> {
  const { calls, tree } = nodes;
  const { relays, fed } = streams;
  if (config.cluster !== undefined) yield { component: new RelaySource({ registry, calls, relays, tree, fed, log }) };
}

async function* openFlv({ config, registry, nodes, admission, log }: ListenerContext): AsyncIterable<Listener> {
  const { bind, modules, defaults } = config;
  if (bind.publishers.flv === undefined) return;
  const publisher = new HttpFlvPublisher({
    registry,
    directory: nodes.directory,
    access: admission.access,
    crossDomains: defaults.crossDomains,
    extended: modules.ertmp.enable,
    proxies: blockList(modules.forwardedFor?.networks),
    log,
  });
  const ports = portsOf(bind.publishers.flv);
  const { routes, media, takesSocket } = publisher;
  yield { component: publisher, addresses: { flv: ports }, http: { ports, routes, media, takesSocket } };
}

async function* openLlhls(context: ListenerContext): AsyncIterable<Listener> {
  const { bind, modules } = context.config;
  if (bind.publishers.llhls === undefined || !modules.llhls.enable) return;
  const publisher = playlistPublisher(LLHLS, context, 'LL-HLS');
  const ports = portsOf(bind.publishers.llhls);
  const http = { ports, routes: publisher.routes, serves: 'llhls' } as const;
  yield { component: publisher, playlists: publisher, addresses: { llhls: ports }, http };
}

async function* openHls(context: ListenerContext): AsyncIterable<Listener> {
  const { bind } = context.config;
  if (bind.publishers.hls === undefined) return;
  const publisher = playlistPublisher(HLS, context, 'HLS');
  const ports = portsOf(bind.publishers.hls);
  const http = { ports, routes: publisher.routes };
  yield { component: publisher, playlists: publisher, addresses: { hls: ports }, http };
}

function playlistPublisher(form: HlsForm, context: ListenerContext, kind: TokenKind): PlaylistPublisher {
  const { config, registry, nodes, streams, admission, log } = context;
  const { cluster, directory, tree, calls, sessionNames } = nodes;
  const { access, redirects } = admission;
  return new PlaylistPublisher(form, {
    registry,
    cluster,
    directory,
    tree,
    calls,
    sessionNames,
    access,
    redirects,
    quality: context.quality,
    bring: streams.demand.bring,
    tokenKeys: tokenKeysOf(config, kind),
    crossDomains: config.defaults.crossDomains,
    onDumped: context.onDumped,
    rewindFolder: context.rewindFolder,
    folder: context.folder,
    log,
  });
}

async function* openWebrtc({
  config,
  registry,
  admission: { access },
  webrtc,
  quality,
  log,
}: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      publishers: { webrtc: bind },
    },
  } = config;
  if (bind === undefined || webrtc === undefined) return;
  const publisher = new WebrtcPublisher({
    registry,
    access,
    pool: webrtc.pool,
    producers: webrtc.producers,
    quality,
    bind,
    log,
  });
  const ports = portsOf(bind.signalling);
  const addresses = { webrtc: ports, ice: bind.iceCandidates.iceCandidate.map(shownCandidate) };
  yield { component: publisher, addresses, http: { ports, handlers: { play: publisher.handler }, serves: 'webrtc' } };
}

async function* openThumbnail({
  config,
  registry,
  nodes: { directory, calls },
  admission: { access },
}: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      publishers: { thumbnail },
    },
    defaults: { crossDomains },
  } = config;
  if (thumbnail === undefined) return;
  const publisher = new ThumbnailPublisher({ registry, access, directory, calls, crossDomains });
  yield {
    component: publisher,
    thumbnails: publisher,
    http: { ports: portsOf(thumbnail), routes: publisher.routes, serves: 'thumbnail' },
  };
}

async function* openPlayback(context: ListenerContext): AsyncIterable<Listener> {
  const { config, registry, nodes, admission, recordings, stored, log } = context;
  const { publishers } = config.bind;
  const isOn = publishers.llhls !== undefined && config.modules.llhls.enable;
  const ports = [isOn ? publishers.llhls : undefined, publishers.hls].flatMap((bind) => (bind ? portsOf(bind) : []));
  if (ports.length === 0) return;
  const publisher = new PlaybackPublisher({
    registry,
    cluster: nodes.cluster,
    access: admission.access,
    recordings,
    stored,
    others: config.cluster === undefined ? undefined : nodes.others,
    calls: nodes.calls,
    playlists: context.playlists,
    tokenKeys: tokenKeysOf(config, 'playback'),
    crossDomains: config.defaults.crossDomains,
    log,
  });
  const { routes } = publisher;
  // a port that both share has them once
  const taken = new Set<number | undefined>();
  const free = (port: number | undefined) => (taken.has(port) ? undefined : (taken.add(port), port));
  for (const { port, tlsPort } of ports)
    yield { component: publisher, http: { ports: { port: free(port), tlsPort: free(tlsPort) }, routes } };
}

async function* openOvt({ config, registry, admission: { access }, log }: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      publishers: { ovt },
    },
    ip,
    modules,
  } = config;
  if (ovt?.port === undefined) return;
  const { port } = ovt;
  const proxyNetworks = blockList(modules.proxyProtocol?.networks);
  const networks = blockList(ovt.networks);
  for (const host of ip) {
    const component = await OvtServer.listen({ registry, access, log, host, port, proxyNetworks, networks });
    yield { component, addresses: { ovt: port } };
  }
}

async function* openSrt({ config, registry, admission: { access }, log }: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      publishers: { srt: bind },
    },
    ip,
  } = config;
  if (bind?.port === undefined) return;
  const component = await whereSrtIs(log, () => SrtPublisher.listen({ registry, access, log, ip, bind }));
  if (component !== undefined) yield { component, addresses: { srtPlay: bind.port } };
}

type TokenKind = 'LL-HLS' | 'HLS' | 'playback';

/** Keys of session tokens: the same on all nodes of a cluster; on a single node, new at each start. */
function tokenKeysOf({ cluster }: ServerConfig, kind: TokenKind): Buffer[] {
  if (cluster === undefined) return [randomBytes(32)];
  return secretsOf(cluster).map((secret) => createHmac('sha256', secret).update(`${kind} sessions`).digest());
}

function shownCandidate({ first, last, protocol }: IceCandidate): string {
  return first === last ? `${first}/${protocol}` : `${first}-${last}/${protocol}`;
}
