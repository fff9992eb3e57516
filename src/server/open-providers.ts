import type { Listener, ListenerContext, OpenListeners } from './listeners.ts';
import { MpegtsServer } from '../providers/mpegts-udp/server.ts';
import { SrtProvider } from '../providers/srt/index.ts';
import { WebrtcProvider } from '../providers/webrtc/index.ts';
import { openRtmp } from './open-rtmp.ts';
import { openRtsp } from './open-rtsp.ts';
import { whereSrtIs } from './srt.ts';
import { portsOf } from './addresses.ts';

/** Providers in the order in which they open. */
export const PROVIDERS: readonly OpenListeners[] = [openRtmp, openRtsp, openSrt, openMpegts, openWebrtc];

async function* openSrt({ config, admission: { access }, log }: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      providers: { srt: bind },
    },
    ip,
  } = config;
  if (bind?.port === undefined) return;
  const component = await whereSrtIs(log, () => SrtProvider.listen({ access, log, ip, bind }));
  if (component !== undefined)
    yield { component, addresses: { srt: bind.port, ...(bind.srtla && { srtla: bind.srtla.port }) } };
}

async function* openMpegts({ config, registry, admission: { access }, log }: ListenerContext): AsyncIterable<Listener> {
  const {
    bind: {
      providers: { mpegts },
    },
    ip: hosts,
  } = config;
  if (mpegts?.port === undefined) return;
  const component = await MpegtsServer.listen({ registry, access, log, hosts, ports: mpegts.port });
  yield { component, addresses: { mpegts: mpegts.port } };
}

async function* openWebrtc({
  config,
  registry,
  admission: { access },
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
  const component = new WebrtcProvider({ registry, access, pool, producers, bind, log });
  const ports = portsOf(bind.signalling);
  yield {
    component,
    addresses: { whip: ports },
    http: { ports, handlers: { publish: component.handler }, serves: 'whip' },
  };
}
