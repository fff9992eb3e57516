import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { SessionSummary } from '../../src/stats/session-summary.ts';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import type { StreamSummary } from '../../src/stats/stream-summary.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { freePorts } from '../support/network/ports.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';
import { shared } from '../support/runner/shared.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const BAD_SECRET = 10;
const run = promisify(execFile);

// Tests have servers of their own, and wait more than they work: only the long ones are serial.

const undo = new Teardown();
test.after.always(() => undo.run());

async function start(t: Pick<ExecutionContext, 'teardown'>, options: KilnOptions = {}): Promise<Kiln> {
  const kiln = await Kiln.start({ srt: {}, ...options });
  t.teardown(() => kiln.stop());
  return kiln;
}

/** ffmpeg that publishes a test pattern as MPEG-TS, until the test is over. */
function publish(t: ExecutionContext, url: string): Program {
  const program = new Program('ffmpeg', [
    ...patternArguments(PICTURE),
    '-f',
    'mpegts',
    `${url}&pkt_size=1316&latency=60000&connect_timeout=60000`,
  ]);
  t.teardown(() => program.stop());
  return program;
}

interface Probe {
  readonly streams: readonly { readonly codec_name: string; readonly width?: number; readonly sample_rate?: string }[];
  readonly packets: readonly { readonly codec_type: string; readonly flags: string }[];
}

/** What ffprobe makes of some seconds of a URL. */
async function probe(url: string): Promise<Probe> {
  const { stdout } = await run(
    'ffprobe',
    [
      '-v',
      'error',
      '-show_streams',
      '-show_packets',
      '-show_entries',
      'packet=codec_type,flags',
      '-of',
      'json',
      '-read_intervals',
      '%+2',
      '-analyzeduration',
      '1500000',
      `${url}&connect_timeout=60000`,
    ],
    { timeout: PATIENCE_MS, maxBuffer: 2 ** 26 },
  );
  return JSON.parse(stdout) as Probe;
}

const statistics = async (kiln: Kiln) => {
  const { body } = await kiln.api<
    Record<'publishers' | 'providers', Record<string, unknown> & { connections: Record<string, number> }>
  >('/v2/stats/current/vhosts/default/apps/app');
  return body.response;
};

test('ffmpeg publishes H264 and AAC, which the API lists and ffprobe and LL-HLS play', async (t) => {
  const kiln = await start(t);
  const publisher = publish(t, kiln.srtUrl('talk'));
  const { input } = await kiln.liveStream('talk');
  t.is(input.sourceType, 'SRT');
  t.is(input.sourceUrl, `srt://default:${kiln.ports.srt}/app/talk`);
  t.like(input.connection, {
    transport: 'SRT',
    protocol: 'SRT',
    localAddress: '127.0.0.1',
    localPort: kiln.ports.srt,
    remoteAddress: '127.0.0.1',
  });
  t.deepEqual(
    input.tracks.map(({ type, video, audio }) => `${type} ${(video ?? audio)?.codec}`),
    ['Video H264', 'Audio AAC'],
  );

  const { streams, packets } = await probe(kiln.srtPlayUrl('talk'));
  t.deepEqual(streams.map(({ codec_name }) => codec_name).sort(), ['aac', 'h264']);
  t.is(streams.find(({ codec_name }) => codec_name === 'h264')?.width, 160);
  t.true(packets.find(({ codec_type }) => codec_type === 'video')?.flags.startsWith('K'), 'it begins with a key frame');
  const player = new Program('ffmpeg', ['-i', `${kiln.srtPlayUrl('talk')}&connect_timeout=60000`, '-f', 'null', '-']);
  t.teardown(() => player.stop());
  const srt = await until('the figures of both connections are known', async () => {
    const { body } = await kiln.api<StreamSummary[]>('/v1/cluster/streams?stream=talk');
    const found = body.response[0]?.srt;
    const known = (found?.in?.packets ?? 0) > 0 && (found?.out?.packets ?? 0) > 0 && (found?.out?.rtt ?? 0) > 0;
    return known && { in: found?.in, out: found?.out };
  });
  t.like(srt.in, { connections: 1, undecryptable: 0 });
  t.true((srt.in?.rtt ?? 0) > 0, JSON.stringify(srt));
  await until('the session of the viewer has figures, too', async () => {
    const { body } = await kiln.api<SessionSummary[]>('/v1/cluster/sessions?vhost=default&app=app&stream=talk&count=5');
    return body.response.some(({ publisher, srt: own }) => publisher === 'srt' && own !== undefined && own.rtt > 0);
  });
  await player.stop();

  const playlist = await until('LL-HLS has it too', async () => {
    const answer = await fetch(kiln.httpUrl('/app/talk/llhls.m3u8'));
    return answer.status === 200 && answer.text();
  });
  t.regex(playlist, /avc1/);

  const counted = await statistics(kiln);
  t.is(counted.providers.connections.srt, 1);
  t.true(Number(counted.publishers.totalBytesOut) > 0);
  t.is((await kiln.api('/v1/vhosts/default/apps/app/streams/talk', 'DELETE')).status, 200);
  await publisher.exited();
  await until('it is gone', async () => (await kiln.stream('talk')).status === 404);
  await until('the log tells how it went', () =>
    /"srt":\{"rtt":[\d.]+,"received":\{"packets":\d+.*SRT session closed/.test(kiln.log),
  );
});

test('callers that may not publish receive the reason', async (t) => {
  const kiln = await start(t, { srt: { provider: '<MaxConnection>2</MaxConnection>' } });
  const caller = new SrtCaller(t);
  const port = kiln.ports.srt as number;
  const refused = async (streamId: string): Promise<number> => (await caller.call(port, { streamId })).refused;
  publish(t, kiln.srtUrl('talk'));
  await kiln.liveStream('talk');
  t.is(await refused('default/none/x'), 1404, 'no such application');
  t.is(await refused('no.such.host/app/x'), 0, 'whatever the host: its virtual host answers to all');
  t.is(await refused('default/app/talk'), 1409, 'the name is taken');
  t.is(await refused('#!::u=default/app/x,m=request'), 1405);
  t.is(await refused('just a name'), 1400);
  t.is(await refused(''), 1400);
  let more = 0;
  await until(
    'there are too many: one more is connected, which publishes nothing',
    async () => (await refused(`default/app/more${more++}`)) === 1402,
  );
  t.is((await caller.call(kiln.ports.srtPlay as number, { streamId: '#!::r=default/app/x,m=publish' })).refused, 1405);
  t.is((await caller.call(kiln.ports.srtPlay as number, { streamId: 'default/none/x' })).refused, 1404);
  await until('the log has the reasons', () => kiln.log.includes('SRT publisher refused: Stream already exists'));
});

long('a publisher that takes over the name of another ends that one', async (t) => {
  const kiln = await start(t, { srt: { provider: '<BlockDuplicateStreamName>false</BlockDuplicateStreamName>' } });
  const first = publish(t, kiln.srtUrl('talk'));
  const before = await kiln.liveStream('talk');
  publish(t, kiln.srtUrl('talk'));
  await first.exited();
  const after = await until('another is there', async () => {
    const { status, body } = await kiln.stream('talk');
    return status === 200 && body.response.input.createdTime !== before.input.createdTime && body.response;
  });
  t.not(after.input.connection?.remotePort, before.input.connection?.remotePort);
});

test('publishers are known by a passphrase or by their port, and over IPv6', async (t) => {
  const [mapped = 0] = freePorts(1);
  const secret = 'only-for-these';
  const kiln = await start(t, {
    env: { SECRET: secret, MAPPED: String(mapped) },
    srt: {
      in:
        '<StreamMap><Stream><Port>${env:MAPPED}</Port><StreamPath>default/app/by-port</StreamPath></Stream></StreamMap>' +
        '<Options><Option><Key>SRTO_PASSPHRASE</Key><Value>${env:SECRET}</Value></Option>' +
        '<Option><Key>SRTO_PBKEYLEN</Key><Value>16</Value></Option></Options>',
      port: '${env:MAPPED}',
    },
    ip: '<IP>127.0.0.1</IP><IP>::1</IP>',
  });
  const caller = new SrtCaller(t);
  const port = kiln.ports.srt as number;
  t.is((await caller.call(port, { streamId: 'default/app/talk', passphrase: 'quite another' })).refused, BAD_SECRET);
  publish(t, `srt://127.0.0.1:${mapped}?passphrase=${secret}`);
  publish(t, `srt://[::1]:${port}?streamid=default/app/six&passphrase=${secret}`);
  await kiln.liveStream('by-port');
  const { input } = await kiln.liveStream('six');
  t.like(input.connection, { localAddress: '::1', remoteAddress: '::1' });
  t.false(kiln.log.includes(secret) || kiln.stdout.includes(secret));
});

const GST_PUBLISHER =
  'mpegtsmux name=mux alignment=7 ! srtsink uri=URI wait-for-connection=false ' +
  'videotestsrc is-live=true ! video/x-raw,width=160,height=90,framerate=15/1 ! ' +
  'x264enc speed-preset=ultrafast tune=zerolatency key-int-max=15 ! h264parse ! queue ! mux. ' +
  'audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2 ! avenc_aac ! aacparse ! queue ! mux.';
/** Writes the luma of 20 frames. */
const GST_PLAYER =
  'srtsrc uri=URI ! tsdemux ! h264parse ! avdec_h264 ! videoconvert ! video/x-raw,format=GRAY8 ! ' +
  'identity eos-after=20 ! fdsink';

/** Arguments of gst-launch-1.0. */
const gst = (pipeline: string, uri: string): string[] => ['-q', ...pipeline.replace('URI', uri).split(' ')];

const codecsOf = ({ input }: StreamInfo) => input.tracks.map(({ video, audio }) => (video ?? audio)?.codec);

/** A server with a stream of GStreamer, and the same as srt-live-transmit carries it from there back to the server. */
async function carryGst() {
  const kiln = await start(undo);
  const publisher = new Program('gst-launch-1.0', gst(GST_PUBLISHER, kiln.srtUrl('gst')));
  undo.teardown(() => publisher.stop());
  const published = await kiln.liveStream('gst');
  const carrier = new Program('srt-live-transmit', ['-q', kiln.srtPlayUrl('gst'), kiln.srtUrl('carried')]);
  undo.teardown(() => carrier.stop());
  return { kiln, published };
}

const carriedGst = shared(carryGst);

long('GStreamer publishes H264 and AAC over SRT', async (t) => {
  const { published } = await carriedGst();
  t.deepEqual(codecsOf(published), ['H264', 'AAC']);
});

long('srt-live-transmit plays a stream, and publishes it under another name', async (t) => {
  const { kiln } = await carriedGst();
  t.deepEqual(codecsOf(await kiln.liveStream('carried')), ['H264', 'AAC']);
});

long('GStreamer plays over SRT, and decodes its video', async (t) => {
  const { kiln } = await carriedGst();
  await kiln.liveStream('carried');
  const { stdout } = await run('gst-launch-1.0', gst(GST_PLAYER, kiln.srtPlayUrl('carried')), {
    timeout: PATIENCE_MS,
    encoding: 'buffer',
  });
  t.is(stdout.length / (160 * 90), 20, 'frames of its picture');
  t.true(new Set(stdout).size > 5, 'which show something');
});

test('viewers are listed under their names, kicked and kept out; a playlist has to be for MPEG-TS', async (t) => {
  const kiln = await start(t, {
    application:
      '<OutputProfiles><OutputProfile><Name>p</Name><OutputStreamName>${OriginStreamName}</OutputStreamName>' +
      '<Playlist><Name>ts</Name><FileName>ts</FileName><Options><EnableTsPackaging>true</EnableTsPackaging></Options>' +
      '<Rendition><Name>sound</Name><Audio>a</Audio></Rendition><Rendition><Name>both</Name><Video>v</Video><Audio>a</Audio></Rendition></Playlist>' +
      '<Playlist><Name>mp4</Name><FileName>mp4</FileName><Rendition><Name>v</Name><Video>v</Video></Rendition></Playlist>' +
      '<Encodes><Video><Name>v</Name><Bypass>true</Bypass></Video><Audio><Name>a</Name><Bypass>true</Bypass></Audio></Encodes>' +
      '</OutputProfile></OutputProfiles>',
  });
  publish(t, kiln.srtUrl('talk'));
  const { outputs } = await kiln.liveStream('talk');
  t.deepEqual(
    outputs[0]?.playlists.map(({ fileName }) => fileName).filter((name) => name === 'master'),
    ['master'],
  );
  const caller = new SrtCaller(t);
  const port = kiln.ports.srtPlay as number;
  t.is((await caller.call(port, { streamId: 'default/app/talk/mp4' })).refused, 1404);
  t.is((await caller.call(port, { streamId: 'default/app/talk/none' })).refused, 1404);
  const { streams } = await probe(`srt://127.0.0.1:${port}?streamid=default/app/talk/ts`);
  t.deepEqual(
    streams.map(({ codec_name }) => codec_name),
    ['aac'],
    'the first rendition alone',
  );

  const viewer = await caller.call(port, { streamId: 'default/app/talk?session=me' });
  await until('media comes', async () => (await viewer.receive()) > 0);
  const path = '/v1/vhosts/default/apps/app/streams/talk/sessions';
  await until('it alone is listed', async () => (await kiln.api<string[]>(path)).body.response.join() === 'me');
  await until('it alone is counted', async () => (await statistics(kiln)).publishers.connections.srt === 1);
  t.is((await caller.call(port, { streamId: 'default/app/talk?session=me' })).refused, 1409);
  t.is((await kiln.api(`${path}/me`, 'DELETE')).status, 200);
  await until('it is disconnected', async () => !(await viewer.connected()));
  t.is((await caller.call(port, { streamId: 'default/app/talk?session=me' })).refused, 1403);
  await until('nobody is counted', async () => (await statistics(kiln)).publishers.connections.srt === 0);
});

long('callers that come and go leave nothing behind', async (t) => {
  const kiln = await start(t);
  publish(t, kiln.srtUrl('talk'));
  await kiln.liveStream('talk');
  const caller = new SrtCaller(t);
  let calls = 0;
  const round = async (): Promise<void> => {
    // names of their own: a server that hears of an end later still holds the name
    const called = Array.from({ length: 20 }, (_, i) =>
      caller.call((i % 2 === 0 ? kiln.ports.srt : kiln.ports.srtPlay) as number, {
        streamId: `default/app/${i % 2 === 0 ? `some${calls++}` : 'talk'}`,
      }),
    );
    for (const call of await Promise.all(called)) {
      t.is(call.refused, 0);
      await call.send(Buffer.alloc(1316, 0x47));
      await call.close();
    }
  };
  const threads = (): number => readdirSync(`/proc/${kiln.pid}/task`).length;
  const memory = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${kiln.pid}/status`, 'utf8'))?.[1]);
  await round();
  const [threadsBefore, memoryBefore] = [threads(), memory()];
  for (let i = 0; i < 5; i++) await round();
  await until('threads have ended', () => threads() <= threadsBefore + 2);
  t.true(memory() < memoryBefore * 1.5, `${memoryBefore} kB before, ${memory()} kB behind`);
  await until('nobody is counted but the publisher', async () => {
    const { providers, publishers } = await statistics(kiln);
    return providers.connections.srt === 1 && publishers.connections.srt === 0;
  });
  t.true((await probe(kiln.srtPlayUrl('talk'))).packets.length > 0, 'and it goes on');
});

long(
  'a caller that vanishes is noticed, one that is silent ends where that is configured, a stop waits for none',
  async (t) => {
    const kiln = await start(t, { srt: { provider: '<PacketSilenceTimeoutMs>8000</PacketSilenceTimeoutMs>' } });
    publish(t, kiln.srtUrl('talk'));
    await kiln.liveStream('talk');
    const vanishing = new SrtCaller(t);
    t.is((await vanishing.call(kiln.ports.srtPlay as number, { streamId: 'default/app/talk' })).refused, 0);
    await until('it watches', async () => (await statistics(kiln)).publishers.connections.srt === 1);
    await vanishing.kill();
    const caller = new SrtCaller(t);
    t.is((await caller.call(kiln.ports.srt as number, { streamId: 'default/app/silent' })).refused, 0);
    await until('the silence is noticed', () => kiln.log.includes('no packet for 8000 ms'));
    t.is((await caller.call(kiln.ports.srt as number, { streamId: 'default/app/other' })).refused, 0);
    kiln.signal('SIGINT');
    t.is(await kiln.exited(), 0);
  },
);
