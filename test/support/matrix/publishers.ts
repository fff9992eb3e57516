import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { FFMPEG7, Program } from '../media/ffmpeg.ts';
import { startGst } from '../rtsp/gst-rtsp.ts';
import type { Kiln } from '../server/kiln.ts';
import { MediaPublisher, type Scene } from '../media/media-publisher.ts';
import { PublisherPeer } from '../webrtc/publisher-peer.ts';
import { h264, ivf, opus } from '../webrtc/webrtc-media.ts';
import {
  FRAMERATE,
  HEIGHT,
  PERIOD,
  PICTURE,
  SOUND,
  WIDTH,
  type AudioName,
  type Codecs,
  type VideoName,
} from './clip.ts';

export interface Publish {
  readonly t: Pick<ExecutionContext, 'teardown'>;
  readonly kiln: Kiln;
  /** Another server, which has what is pulled over OVT, as it was published. */
  readonly origin: () => Promise<Kiln>;
  /** Which publishes by MPEG-TS over UDP. */
  readonly port: number;
  readonly stream: string;
  readonly codecs: Codecs;
  /** A file of them, encoded when somebody publishes it. */
  readonly clip: () => Promise<string>;
}

const PACE = ['-nostdin', '-loglevel', 'error', '-re', '-i'];
const COPY = ['-map', '0', '-c', 'copy'];

/** ffmpeg that sends the clip as it is. */
async function ffmpeg({ t, clip }: Publish, args: readonly string[], program = 'ffmpeg'): Promise<void> {
  const sender = new Program(program, [...PACE, await clip(), ...COPY, ...args]);
  t.teardown(() => sender.stop());
}

const PARSERS: Readonly<Record<VideoName | AudioName, string>> = {
  // Matroska tells no decode times, and where pictures are reordered GStreamer's muxer makes none
  H264: 'h264parse',
  H265: 'h265parse ! h265timestamper ! h265parse',
  VP8: 'identity',
  AAC: 'aacparse',
  OPUS: 'opusparse',
};

function parsersOf(codecs: Codecs): string[] {
  return codecs.split('+').map((codec) => PARSERS[codec as VideoName | AudioName]);
}

/** GStreamer that sends it as MPEG-TS, in real time: `sink` waits for the clock. */
async function gstreamer({ t, clip, codecs }: Publish, ...sink: readonly string[]): Promise<void> {
  const [video, audio] = parsersOf(codecs) as [string, string];
  const sender = new Program('gst-launch-1.0', [
    '-q',
    'filesrc',
    `location=${await clip()}`,
    '!',
    'matroskademux',
    'name=d',
    'd.',
    '!',
    ...video.split(' '),
    '!',
    'queue',
    '!',
    'mux.',
    'd.',
    '!',
    audio,
    '!',
    'queue',
    '!',
    'mux.',
    'mpegtsmux',
    'name=mux',
    'alignment=7',
    '!',
    ...sink,
  ]);
  t.teardown(() => sender.stop());
}

const OPTIONS = '&latency=120000&pkt_size=1316&connect_timeout=30000';

/** Every way in, by the program that comes in. */
export const PUBLISHERS = {
  'RTMP (ffmpeg)': async (one: Publish) => ffmpeg(one, ['-f', 'flv', one.kiln.rtmpUrl(one.stream)], FFMPEG7),
  'RTMPS (ffmpeg)': async (one: Publish) =>
    ffmpeg(one, ['-f', 'flv', `rtmps://127.0.0.1:${one.kiln.ports.rtmps}/app/${one.stream}`]),
  /** ffmpeg 7 does not put Opus and VP8 into FLV. */
  'RTMP (Enhanced)': publishLoops,
  'SRT (ffmpeg)': async (one: Publish) => ffmpeg(one, ['-f', 'mpegts', one.kiln.srtUrl(one.stream, OPTIONS)]),
  'SRT (srt-live-transmit)': async ({ t, kiln, stream, clip }: Publish) => {
    const source = spawn('ffmpeg', [...PACE, await clip(), ...COPY, '-f', 'mpegts', 'pipe:1'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const carrier = spawn(
      'srt-live-transmit',
      ['-q', '-chunk:1316', 'file://con', kiln.srtUrl(stream, '&conntimeo=30000')],
      { stdio: [source.stdout, 'ignore', 'ignore'] },
    );
    for (const child of [source, carrier]) {
      t.teardown(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill('SIGKILL');
        await once(child, 'exit');
      });
    }
  },
  'SRT (GStreamer)': async (one: Publish) =>
    gstreamer(one, 'srtsink', `uri=${one.kiln.srtUrl(one.stream)}`, 'wait-for-connection=false', 'sync=true'),
  'RTSP (ffmpeg)': async (one: Publish) =>
    ffmpeg(one, ['-f', 'rtsp', '-rtsp_transport', 'tcp', one.kiln.rtspUrl(one.stream)]),
  'RTSP over UDP (ffmpeg)': async (one: Publish) =>
    ffmpeg(one, ['-f', 'rtsp', '-rtsp_transport', 'udp', one.kiln.rtspUrl(one.stream)]),
  'RTSP (GStreamer)': async ({ t, kiln, stream, clip, codecs }: Publish) => {
    const [video, audio] = parsersOf(codecs) as [string, string];
    const pipeline = `rtspclientsink name=s protocols=tcp location=${kiln.rtspUrl(stream)} filesrc location=${await clip()} ! matroskademux name=d d. ! ${video} ! queue ! s.sink_0 d. ! ${audio} ! queue ! s.sink_1`;
    const sender = new Program('gst-launch-1.0', ['-q', ...pipeline.split(' ')]);
    t.teardown(() => sender.stop());
  },
  'MPEG-TS over UDP (ffmpeg)': async (one: Publish) =>
    ffmpeg(one, ['-f', 'mpegts', `udp://127.0.0.1:${one.port}?pkt_size=1316`]),
  'MPEG-TS over UDP (GStreamer)': async (one: Publish) =>
    gstreamer(one, 'udpsink', 'host=127.0.0.1', `port=${one.port}`),
  'MPEG-TS over RTP (ffmpeg)': async (one: Publish) => ffmpeg(one, ['-f', 'rtp_mpegts', `rtp://127.0.0.1:${one.port}`]),
  'WHIP (libdatachannel)': async ({ t, kiln, stream, codecs }: Publish) => {
    const { video, audio } = await loops(codecs);
    const peer = new PublisherPeer({ media: [video, audio] });
    t.teardown(() => peer.close());
    await peer.publish(kiln.httpUrl(`/app/${stream}?direction=whip`));
  },
  'RTSP pull (GStreamer)': async ({ t, kiln, stream, clip, codecs }: Publish) => {
    const [video, audio] = parsersOf(codecs) as [string, string];
    const [payVideo, payAudio] = codecs.split('+').map((codec) => PAYLOADERS[codec as VideoName | AudioName]);
    const server = await startGst(t, {
      mounts: {
        '/clip': `( filesrc location=${await clip()} ! matroskademux name=d d. ! queue ! ${video} ! ${payVideo} name=pay0 pt=96 d. ! queue ! ${audio} ! ${payAudio} name=pay1 pt=97 )`,
      },
    });
    await pull(kiln, stream, server.url('/clip'));
  },
  'OVT pull (Kiln)': async (one: Publish) => {
    const origin = await one.origin();
    const there = { ...one, kiln: origin };
    if (one.codecs.endsWith('AAC')) await ffmpeg(there, ['-f', 'flv', origin.rtmpUrl(one.stream)], FFMPEG7);
    else await publishLoops(there);
    await origin.liveStream(one.stream);
    await pull(one.kiln, one.stream, origin.ovtUrl(one.stream));
  },
} as const satisfies Readonly<Record<string, (one: Publish) => Promise<void>>>;

export type PublisherName = keyof typeof PUBLISHERS;

const PAYLOADERS: Readonly<Record<VideoName | AudioName, string>> = {
  H264: 'rtph264pay config-interval=-1',
  H265: 'rtph265pay config-interval=-1',
  VP8: 'rtpvp8pay',
  AAC: 'rtpmp4gpay',
  OPUS: 'rtpopuspay',
};

async function publishLoops({ t, kiln, stream, codecs }: Publish): Promise<void> {
  const publisher = await MediaPublisher.start(kiln.ports.rtmp, stream, [await loops(codecs)]);
  t.teardown(() => publisher.close());
}

/** What an origin may take its time for, and try again. */
const PATIENT = { retryCount: 5, noInputFailoverTimeoutMs: 30_000 };

/** @throws Error when it cannot be had */
async function pull(kiln: Kiln, stream: string, url: string): Promise<void> {
  const { status, body } = await kiln.api('/v1/vhosts/default/apps/app/streams', 'POST', {
    name: stream,
    urls: [url],
    properties: PATIENT,
  });
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(body)} ${kiln.log.slice(-2000)}`);
}

const PACKETS_PER_SECOND = 50;

/** The scene for those who play it in a loop. */
async function loops(codecs: Codecs): Promise<Scene> {
  const options = { source: PICTURE, width: WIDTH, height: HEIGHT, fps: FRAMERATE, seconds: PERIOD };
  const [video, audio] = await Promise.all([
    codecs.startsWith('H264') ? h264({ ...options, gop: FRAMERATE }) : ivf('VP8', options),
    opus(PERIOD, 1, 'audio', 0, SOUND),
  ]);
  return { video, audio: { ...audio, frames: audio.frames.slice(0, PERIOD * PACKETS_PER_SECOND) } };
}
