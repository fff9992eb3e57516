import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { freePorts } from '../support/network/ports.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { until } from '../support/time/until.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';
import { issue } from '../support/network/x509.ts';
import { number, type BenchContext, type Line, type Measurement } from './measurement.ts';
import { cpuPercent, withServer } from './server.ts';

const STREAMS = 4;
const SETTLE_MS = 6000;
/** Until what runs often is compiled: RTMP is not to be the one that pays for all. */
const WARM_UP_MS = 12_000;
/** Of what is published once and pulled: longer than any measurement takes. */
const LOOPS = 15;
const APP = '/v1/vhosts/default/apps/app';
const NAMES = Array.from({ length: STREAMS }, (_, i) => `stream${i}`);
const RTSP_SERVER = fileURLToPath(new URL('../support/rtsp/rtsp-server.py', import.meta.url));

interface Way extends BenchContext {
  readonly kiln: Kiln;
  readonly mpegts: readonly number[];
}

/** Publishes all streams, or has them pulled. @returns ends that */
type Publish = (way: Way) => Promise<() => Promise<unknown> | void>;

/** Publishers of the clip that encode nothing. */
function byFfmpeg(target: (way: Way, index: number) => readonly string[]): Publish {
  return async (way) => {
    const programs = NAMES.map(
      (_, index) =>
        new Program('ffmpeg', [
          '-nostdin',
          '-v',
          'error',
          '-re',
          '-stream_loop',
          '-1',
          '-i',
          way.clip,
          '-c',
          'copy',
          ...target(way, index),
        ]),
    );
    return () => Promise.all(programs.map((program) => program.stop()));
  };
}

async function pull(kiln: Kiln, urlOf: (name: string) => string): Promise<() => Promise<void>> {
  for (const name of NAMES) {
    const { status, body } = await kiln.api(`${APP}/streams`, 'POST', {
      name,
      urls: [urlOf(name)],
      properties: { unusedStreamDeletionTimeoutMs: 0 },
    });
    if (status !== 201) throw new Error(`${urlOf(name)}: ${JSON.stringify(body)}`);
  }
  return async () => {
    for (const name of NAMES) await kiln.api(`${APP}/streams/${name}`, 'DELETE');
  };
}

const fromOvt: Publish = async ({ kiln, clip }) => {
  const origin = await Kiln.start({ ovt: true });
  const publishers = NAMES.map(
    (name) =>
      new Program('ffmpeg', [
        '-nostdin',
        '-v',
        'error',
        '-re',
        '-stream_loop',
        '-1',
        '-i',
        clip,
        '-c',
        'copy',
        '-f',
        'flv',
        origin.rtmpUrl(name),
      ]),
  );
  for (const name of NAMES) await origin.liveStream(name);
  const end = await pull(kiln, (name) => origin.ovtUrl(name));
  return async () => {
    await end();
    await Promise.all(publishers.map((publisher) => publisher.stop()));
    await origin.stop();
  };
};

const fromRtsp: Publish = async ({ kiln, clip, folder }) => {
  const long = join(folder, 'long.mp4');
  const encoder = new Program('ffmpeg', [
    '-nostdin',
    '-v',
    'error',
    '-y',
    '-stream_loop',
    `${LOOPS}`,
    '-i',
    clip,
    '-c',
    'copy',
    long,
  ]);
  if ((await encoder.exited()) !== 0) throw new Error(encoder.stderr);
  const launch =
    `( filesrc location=${long} ! qtdemux name=d d.video_0 ! queue ! h264parse config-interval=-1 ! rtph264pay name=pay0 pt=96 ` +
    'd.audio_0 ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97 )';
  const mounts = Object.fromEntries(NAMES.map((name) => [`/${name}`, launch]));
  const server = spawn('/usr/bin/python3', [RTSP_SERVER, JSON.stringify({ mounts, protocols: ['tcp'] })], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  const end = await pull(kiln, (name) => `rtsp://127.0.0.1:${String(port).trim()}/${name}`);
  return async () => {
    await end();
    server.stdin.end();
    await once(server, 'exit');
  };
};

const byWebrtc: Publish = async ({ kiln }) => {
  const media = [await h264({ width: 1280, height: 720, kbit: 2500, gop: 30, seconds: 4 }), await opus(4)];
  const peers = NAMES.map(() => new PublisherPeer({ media }));
  for (const [index, peer] of peers.entries()) await peer.publish(kiln.httpUrl(`/app/${NAMES[index]}?direction=whip`));
  return () => peers.forEach((peer) => peer.close());
};

/** RTMP first: the others are compared with it. */
const DOORS: readonly (readonly [name: string, publish: Publish])[] = [
  ['RTMP', byFfmpeg(({ kiln }, index) => ['-f', 'flv', kiln.rtmpUrl(NAMES[index] as string)])],
  ['RTMPS', byFfmpeg(({ kiln }, index) => ['-f', 'flv', `rtmps://127.0.0.1:${kiln.ports.rtmps}/app/${NAMES[index]}`])],
  [
    'MPEG-TS over UDP',
    byFfmpeg(({ mpegts }, index) => ['-f', 'mpegts', `udp://127.0.0.1:${mpegts[index]}?pkt_size=1316`]),
  ],
  ['SRT', byFfmpeg(({ kiln }, index) => ['-f', 'mpegts', kiln.srtUrl(NAMES[index] as string, '&pkt_size=1316')])],
  ['WebRTC', byWebrtc],
  ['RTSP', fromRtsp],
  ['OVT', fromOvt],
];

/** What taking a stream in costs, whichever way it comes, its packaging for LL-HLS included. */
export const doors: Measurement = {
  name: 'doors',
  run: async (context) => {
    const { cert, key } = issue('localhost');
    const [certPath, keyPath] = ['bench.crt', 'bench.key'].map((file) => join(context.folder, file)) as [
      string,
      string,
    ];
    writeFileSync(certPath, cert);
    writeFileSync(keyPath, key);
    const mpegts = freePorts(STREAMS);
    const streams = mpegts
      .map((port, index) => `<Stream><Name>${NAMES[index]}</Name><Port>${port}/udp</Port></Stream>`)
      .join('');
    return withServer(
      async ({ kiln }) => {
        const idle = await cpuPercent(kiln.pid, { times: 1 });
        const lines: Line[] = [];
        let first: number | undefined;
        for (const [name, publish] of DOORS) {
          const end = await publish({ ...context, kiln, mpegts });
          for (const stream of NAMES) await kiln.liveStream(stream);
          await delay(first === undefined ? WARM_UP_MS : SETTLE_MS);
          const each = ((await cpuPercent(kiln.pid, { times: 2 })) - idle) / STREAMS;
          await end();
          await until(
            'the streams are gone',
            async () => (await kiln.api<string[]>(`${APP}/streams`)).body.response.length === 0,
          );
          first ??= each;
          const reference =
            first === each ? `idle server ${number(idle, 2)} %` : `${number(each / first, 2)} times RTMP`;
          lines.push({
            what: `ingest over ${name}, packaging included, CPU per stream, ${STREAMS} streams`,
            measured: `${number(each, 2)} %`,
            reference,
          });
        }
        return lines;
      },
      {
        tls: { certPath, keyPath },
        whip: true,
        ovt: true,
        srt: {},
        bindProviders: `<MPEGTS><Port>${mpegts.map((port) => `${port}/udp`).join(',')}</Port></MPEGTS>`,
        providers: `<RTSPPull/><MPEGTS><StreamMap>${streams}</StreamMap></MPEGTS>`,
      },
    );
  },
};
