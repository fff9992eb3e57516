import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { FFMPEG7, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { chunklists } from '../support/hls/llhls-recording.ts';
import { long } from '../support/runner/long.ts';
import { freePorts } from '../support/network/ports.ts';
import { faulty, UdpRelay } from '../support/network/udp-relay.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const GROUP = '239.255.71.9';
/** A sender may stand still for so long. */
const SILENCE_MS = 8000;
const PATTERN = [
  '-v',
  'error',
  '-re',
  '-f',
  'lavfi',
  '-i',
  'testsrc2=size=320x180:rate=25',
  '-re',
  '-f',
  'lavfi',
  '-i',
  'sine=frequency=440:sample_rate=48000',
];
const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p', '-g', '25'];
const X265 = [
  '-c:v',
  'libx265',
  '-preset',
  'ultrafast',
  '-pix_fmt',
  'yuv420p',
  '-x265-params',
  'log-level=none:keyint=25:bframes=2',
];

let kiln: Kiln;
let ports: number[];
let multicast: number;

test.before(async () => {
  [multicast, ...ports] = freePorts(8) as [number, ...number[]];
  const map =
    `<Stream><Name>udp_\${Port}</Name><Port>${ports.slice(0, 4).join(',')}/udp</Port></Stream>` +
    `<Stream><Name>group</Name><Port>${GROUP}:${multicast}/udp</Port></Stream>`;
  kiln = await Kiln.start({
    hostName: 'localhost',
    llhls: '<SegmentDuration>1</SegmentDuration>',
    bindProviders: `<MPEGTS><Port>${ports.join(',')},${GROUP}:${multicast}/udp</Port></MPEGTS>`,
    providers: `<MPEGTS><PacketSilenceTimeoutMs>${SILENCE_MS}</PacketSilenceTimeoutMs><StreamMap>${map}</StreamMap><AudioMap><Item><Name>Korean</Name><Language>ko</Language></Item></AudioMap></MPEGTS>`,
  });
  const { status } = await kiln.api('/v1/vhosts', 'POST', [{ name: 'made', host: { names: ['127.0.0.1'] } }]);
  if (status !== 200) throw new Error(`${status}`);
});

test.after.always(() => kiln?.stop());

/** Plays three seconds of a stream; whatever ffmpeg objects to is an error. */
async function play(host: string, path: string): Promise<void> {
  const master = `http://${host}:${kiln.ports.http}/${path}/llhls.m3u8`;
  await until(`segments of ${path}`, async () => {
    const lists = await chunklists(master).catch(() => new Map<number, string>());
    const texts = await Promise.all([...lists.values()].map(async (url) => (await fetch(url)).text()));
    return texts.length === 2 && texts.every((text) => text.includes('#EXTINF'));
  });
  const { stderr } = await promisify(execFile)(
    'ffmpeg',
    ['-nostdin', '-v', 'error', '-i', master, '-t', '3', '-map', '0:v', '-map', '0:a', '-f', 'null', '-'],
    { timeout: PATIENCE_MS },
  );
  if (stderr !== '') throw new Error(stderr);
}

interface Case {
  readonly program: string;
  /** @param port of loopback */
  readonly args: (port: number) => readonly string[];
  readonly codecs: readonly string[];
}

const CASES: Readonly<Record<string, Case>> = {
  'ffmpeg, H264 and AAC': {
    program: 'ffmpeg',
    args: (port) => [...PATTERN, ...X264, '-c:a', 'aac', '-f', 'mpegts', `udp://127.0.0.1:${port}?pkt_size=1316`],
    codecs: ['H264', 'AAC'],
  },
  'ffmpeg in RTP, H265 with B-frames and AAC in LATM': {
    program: FFMPEG7,
    args: (port) => [
      ...PATTERN,
      ...X265,
      '-c:a',
      'aac',
      '-mpegts_flags',
      'latm',
      '-f',
      'rtp_mpegts',
      `rtp://127.0.0.1:${port}`,
    ],
    codecs: ['H265', 'AAC'],
  },
  'GStreamer, H264 and Opus': {
    program: 'gst-launch-1.0',
    args: (port) => [
      '-q',
      'videotestsrc',
      'is-live=true',
      '!',
      'video/x-raw,width=320,height=180,framerate=25/1',
      '!',
      'x264enc',
      'tune=zerolatency',
      'speed-preset=ultrafast',
      'key-int-max=25',
      '!',
      'h264parse',
      '!',
      'mux.',
      'audiotestsrc',
      'is-live=true',
      '!',
      'audio/x-raw,rate=48000,channels=2',
      '!',
      'opusenc',
      '!',
      'mux.',
      'mpegtsmux',
      'name=mux',
      'alignment=7',
      '!',
      'udpsink',
      'host=127.0.0.1',
      `port=${port}`,
    ],
    codecs: ['H264', 'OPUS'],
  },
  'GStreamer in RTP, H264 and AAC': {
    program: 'gst-launch-1.0',
    args: (port) => [
      '-q',
      'videotestsrc',
      'is-live=true',
      '!',
      'video/x-raw,width=320,height=180,framerate=25/1',
      '!',
      'x264enc',
      'tune=zerolatency',
      'speed-preset=ultrafast',
      'key-int-max=25',
      '!',
      'h264parse',
      '!',
      'mux.',
      'audiotestsrc',
      'is-live=true',
      '!',
      'audio/x-raw,rate=48000,channels=2',
      '!',
      'avenc_aac',
      '!',
      'aacparse',
      '!',
      'mux.',
      'mpegtsmux',
      'name=mux',
      'alignment=7',
      '!',
      'rtpmp2tpay',
      '!',
      'udpsink',
      'host=127.0.0.1',
      `port=${port}`,
    ],
    codecs: ['H264', 'AAC'],
  },
};

for (const [i, [name, { program, args, codecs }]] of Object.entries(CASES).entries()) {
  test(`${name}: live, and plays without a fault`, async (t) => {
    const port = ports[i] as number;
    const sender = new Program(program, args(port));
    t.teardown(() => sender.stop());
    const { input } = await kiln.liveStream(`udp_${port}`);
    t.is(input.sourceType, 'MPEGTS');
    t.like(input.connection, {
      transport: 'UDP',
      protocol: 'UDP',
      localAddress: '127.0.0.1',
      localPort: port,
      remoteAddress: '127.0.0.1',
    });
    t.deepEqual(
      input.tracks.map(({ video, audio }) => video?.codec ?? audio?.codec),
      codecs,
    );
    await play('localhost', `app/udp_${port}`);
    t.true(sender.running, sender.stderr);
    await sender.stop();
    await until('the stream has ended', async () => (await kiln.stream(`udp_${port}`)).status === 404);
  });
}

// plain datagrams have no numbers: a counter of 4 bits does not tell any order
const BAD_WAYS = [
  ['plain', 'mpegts', 'udp', { loss: 0.01 }],
  ['in RTP', 'rtp_mpegts', 'rtp', { loss: 0.01, jitterMs: 20 }],
] as const;
for (const [i, [form, format, scheme, faults]] of BAD_WAYS.entries()) {
  long(
    `${form}, over a way that loses${'jitterMs' in faults ? ' and reorders' : ''}: what is put out decodes without a fault`,
    async (t) => {
      const port = ports[5 + i] as number;
      const relay = await UdpRelay.open(port, faulty({ seed: 71, ...faults }));
      t.teardown(() => relay.close());
      const app = {
        name: scheme,
        type: 'live',
        providers: {
          mpegts: {
            streams: [{ name: 'bad', port: `${port}` }],
            packetReordering: true,
            packetSilenceTimeoutMs: SILENCE_MS,
          },
        },
        publishers: { llhls: { segmentDuration: 1 } },
      };
      t.is((await kiln.api('/v1/vhosts/made/apps', 'POST', [app])).status, 200);
      const sender = new Program('ffmpeg', [
        ...PATTERN,
        ...X264,
        '-c:a',
        'aac',
        '-f',
        format,
        `${scheme}://127.0.0.1:${relay.port}?pkt_size=1316`,
      ]);
      t.teardown(() => sender.stop());
      await until(
        'the stream',
        async () => (await kiln.api(`/v1/vhosts/made/apps/${scheme}/streams/bad`)).status === 200,
      );
      await play('127.0.0.1', `${scheme}/bad`);
      const { lost, overtaken } = relay.counts.toServer;
      t.true(lost > 0);
      t.is(overtaken > 0, 'jitterMs' in faults);
    },
  );
}

long('a multicast group; it comes back when its sender does', async (t) => {
  for (let round = 0; round < 2; round++) {
    const sender = new Program('ffmpeg', [
      ...PATTERN,
      ...X264,
      '-c:a',
      'ac3',
      '-f',
      'mpegts',
      `udp://${GROUP}:${multicast}?pkt_size=1316&localaddr=127.0.0.1`,
    ]);
    t.teardown(() => sender.stop());
    const { input } = await kiln.liveStream('group');
    t.like(input.connection, { localAddress: GROUP, localPort: multicast });
    t.deepEqual(
      input.tracks.map(({ video, audio }) => video?.codec ?? audio?.codec),
      ['H264', 'AC3'],
    );
    await sender.stop();
    await until('the stream has ended', async () => (await kiln.stream('group')).status === 404);
  }
});

test('an application that the API makes has the port that it names, and another name when it is changed', async (t) => {
  const port = ports[4] as number;
  const sender = new Program('ffmpeg', [
    ...PATTERN,
    ...X264,
    '-c:a',
    'aac',
    '-f',
    'mpegts',
    `udp://127.0.0.1:${port}?pkt_size=1316`,
  ]);
  t.teardown(() => sender.stop());
  const app = (name: string) => ({
    providers: { mpegts: { streams: [{ name, port: `${port}/udp` }], packetSilenceTimeoutMs: SILENCE_MS } },
    publishers: { llhls: {} },
  });
  const created = await kiln.api('/v1/vhosts/made/apps', 'POST', [{ name: 'ports', type: 'live', ...app('one') }]);
  t.is(created.status, 200);
  const isLive = (name: string) => async () =>
    (await kiln.api(`/v1/vhosts/made/apps/ports/streams/${name}`)).status === 200;
  await until('the stream', isLive('one'));
  const changed = await kiln.api('/v1/vhosts/made/apps/ports', 'PATCH', app('other'));
  t.is(changed.status, 200);
  await until('the stream by its other name', isLive('other'));
  t.false(await isLive('one')());
  const ended = await kiln.api('/v1/vhosts/made/apps/ports/streams/other', 'DELETE');
  t.is(ended.status, 200);
});
