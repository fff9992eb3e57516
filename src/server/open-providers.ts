import type { Listener, ListenerContext, OpenListeners } from './listeners.ts';
import { blockList } from '../config/networks.ts';
import { MpegtsServer } from '../providers/mpegts-udp/server.ts';
import { hasSuccessor } from '../providers/rtmp/hand-over.ts';
import { RtmpServer } from '../providers/rtmp/server.ts';
import { SrtProvider } from '../providers/srt/index.ts';
import { WebrtcProvider } from '../providers/webrtc/index.ts';
import { whereSrtIs } from './srt.ts';
import { portsOf } from './summary.ts';

/** Providers in the order in which they open. */
export const PROVIDERS: readonly OpenListeners[] = [openRtmp, openSrt, openMpegts, openWebrtc];

async function* openRtmp({
  config,
  registry,
  neighbours: { access, cluster },
  certificates,
  log,
}: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      providers: { rtmp },
    },
    ip,
    modules,
  } = config;
  if (rtmp === undefined) return;
  const { port, tlsPort } = rtmp;
  const tls = tlsPort === undefined ? undefined : { port: tlsPort, certificates };
  const proxyNetworks = blockList(modules.proxyProtocol?.networks);
  const extended = modules.ertmp.enable;
  const handOver = { registry, hasSuccessor: () => hasSuccessor(cluster) };
  for (const host of ip) {
    const part = await RtmpServer.listen({ access, log, host, port, tls, proxyNetworks, extended, handOver });
    yield { part, addresses: { rtmp: { port, tlsPort } } };
  }
}

async function* openSrt({ config, neighbours: { access }, log }: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      providers: { srt: bind },
    },
    ip,
  } = config;
  if (bind?.port === undefined) return;
  const part = await whereSrtIs(log, () => SrtProvider.listen({ access, log, ip, bind }));
  if (part !== undefined) yield { part, addresses: { srt: bind.port } };
}

async function* openMpegts({
  config,
  registry,
  neighbours: { access },
  log,
}: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      providers: { mpegts },
    },
    ip: hosts,
  } = config;
  if (mpegts?.port === undefined) return;
  const part = await MpegtsServer.listen({ registry, access, log, hosts, ports: mpegts.port });
  yield { part, addresses: { mpegts: mpegts.port } };
}

async function* openWebrtc({
  config,
  registry,
  neighbours: { access },
  webrtc,
  log,
}: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      providers: { webrtc: bind },
    },
  } = config;
  if (bind === undefined || webrtc === undefined) return;
  const { pool, producers } = webrtc;
  const part = new WebrtcProvider({ registry, access, pool, producers, bind, log });
  const ports = portsOf(bind.signalling);
  yield { part, addresses: { whip: ports }, http: { ports, entrances: { publish: part.entrance }, serves: 'whip' } };
}
