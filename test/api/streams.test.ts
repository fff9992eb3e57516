import test from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import { buildAudioSpecificConfig } from '../../src/codecs/aac.ts';
import type { Registry } from '../../src/core/registry.ts';
import type { Connection, Source } from '../../src/core/source.ts';
import type { InputStream } from '../../src/core/input-stream.ts';
import type { AudioTrack, DataTrack, Track, VideoTrack } from '../../src/core/track.ts';
import { VIDEO_TIMEBASE } from '../../src/core/timebase.ts';
import { apiRoutes } from '../../src/api/app.ts';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import { Passthrough } from '../../src/providers/intake/passthrough.ts';
import { CodecInventory } from '../../src/transcode/codecs.ts';
import { attachOutputs } from '../../src/transcode/outputs.ts';
import { apiOptions, basic, openApi, sampleRegistry, TOKEN } from '../support/api/api.ts';

const PATH = '/v1/vhosts/default/apps/app/streams';
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/;

const VIDEO: VideoTrack = {
  id: 0,
  name: 'Video',
  type: 'video',
  codec: 'H264',
  timebase: VIDEO_TIMEBASE,
  bypass: false,
  width: 1280,
  height: 720,
  bitrate: 2_000_000,
  framerate: 29.97,
  keyFrameInterval: 0,
};
const AUDIO: AudioTrack = {
  id: 1,
  name: 'Audio',
  type: 'audio',
  codec: 'AAC',
  timebase: { num: 1, den: 48_000 },
  bypass: false,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};
const DATA: DataTrack = {
  id: 2,
  name: '',
  type: 'data',
  codec: 'ID3v2',
  timebase: { num: 1, den: 1000 },
  bypass: false,
};

function publish(registry: Registry, name: string, tracks: Track[], source: Partial<Source> = {}): InputStream {
  const application = registry.vhost('default').application('app');
  const options = { replace: false, maxConnections: 0 };
  const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp', ...source }, options);
  if (tracks.length > 0) input.setTracks(tracks);
  return input;
}

/** Writes `seconds` of picture at 30 frames a second with a key frame each second. */
function writeVideo(input: InputStream, track: VideoTrack, seconds: number): void {
  for (let frame = 0; frame < seconds * 30; frame++) {
    const dts = frame * 3000;
    input.write({ track, dts, pts: dts, duration: 3000, key: frame % 30 === 0, data: Buffer.alloc(1000) });
  }
}

test('streams are listed once their tracks are known', async (t) => {
  const { call, registry } = await openApi(t);
  t.deepEqual((await call('GET', PATH)).body?.response, []);
  publish(registry, 'waiting', []);
  publish(registry, 'live ä', [VIDEO]);
  t.deepEqual((await call('GET', PATH)).body?.response, ['live ä']);
  t.is((await call('GET', `${PATH}/waiting`)).status, 404);
  t.is((await call('GET', `${PATH}/${encodeURIComponent('live ä')}`)).status, 200);
});

test('an input without a connection, a URL or an output', async (t) => {
  const { call, registry } = await openApi(t);
  publish(registry, 's', [VIDEO, AUDIO, DATA], { type: 'Scheduled', kind: 'scheduled' });
  const { body } = await call('GET', `${PATH}/s`);
  const info = body?.response as StreamInfo;
  t.is(info.name, 's');
  t.deepEqual(info.outputs, []);
  t.deepEqual(Object.keys(info.input), ['createdTime', 'sourceType', 'tracks']);
  t.is(info.input.sourceType, 'Scheduled');
  t.regex(info.input.createdTime, LOCAL_TIME);
});

test('tracks before anything was measured show what the source declared', async (t) => {
  const { call, registry } = await openApi(t);
  publish(registry, 's', [VIDEO, AUDIO, DATA]);
  const { body } = await call('GET', `${PATH}/s`);
  t.deepEqual((body?.response as StreamInfo).input.tracks, [
    {
      id: 0,
      name: 'Video',
      type: 'Video',
      video: {
        bypass: false,
        codec: 'H264',
        codecModule: 'none',
        timebase: { num: 1, den: 90_000 },
        width: 1280,
        height: 720,
        maxWidth: 1280,
        maxHeight: 720,
        bitrate: 2_000_000,
        bitrateConf: 2_000_000,
        bitrateAvg: 0,
        bitrateLatest: 0,
        framerate: 29.969999313354492,
        framerateConf: 29.969999313354492,
        maxFramerate: 29.969999313354492,
        framerateAvg: 0,
        framerateLatest: 0,
        keyFrameInterval: 0,
        keyFrameIntervalConf: 0,
        keyFrameIntervalAvg: 0,
        keyFrameIntervalLatest: 0,
        hasBframes: false,
        deltaFramesSinceLastKeyFrame: 0,
        configChangeCount: 0,
      },
    },
    {
      id: 1,
      name: 'Audio',
      type: 'Audio',
      audio: {
        bypass: false,
        codec: 'AAC',
        codecModule: 'none',
        timebase: { num: 1, den: 48_000 },
        samplerate: 48_000,
        channel: 2,
        bitrate: 0,
        bitrateConf: 0,
        bitrateAvg: 0,
        bitrateLatest: 0,
        configChangeCount: 0,
      },
    },
    { id: 2, name: 'Data', type: 'Data', data: { codec: 'ID3v2' } },
  ]);
});

test('measured values stand in for what was not declared', async (t) => {
  const { call, registry } = await openApi(t);
  const undeclared = { ...VIDEO, bitrate: 0, framerate: 0 };
  const input = publish(registry, 's', [undeclared]);
  writeVideo(input, undeclared, 4);
  const { body } = await call('GET', `${PATH}/s`);
  const video = (body?.response as StreamInfo).input.tracks[0]?.video;
  t.like(video, {
    bitrateConf: 0,
    framerateConf: 0,
    keyFrameIntervalConf: 0,
    framerate: 30,
    framerateAvg: 30,
    keyFrameInterval: 30,
    keyFrameIntervalAvg: 30,
    keyFrameIntervalLatest: 30,
    deltaFramesSinceLastKeyFrame: 29,
  });
  t.is(video?.bitrate, video?.bitrateAvg);
  t.true((video?.bitrate ?? 0) > 200_000);
});

test('a change of configuration is counted, dated, and leaves the largest size standing', async (t) => {
  const { call, registry } = await openApi(t);
  const input = publish(registry, 's', [VIDEO]);
  input.setTracks([{ ...VIDEO, width: 640, height: 360, language: 'en', characteristics: 'public.x' }]);
  const { body } = await call('GET', `${PATH}/s`);
  const video = (body?.response as StreamInfo).input.tracks[0]?.video;
  t.like(video, {
    width: 640,
    height: 360,
    maxWidth: 1280,
    maxHeight: 720,
    configChangeCount: 1,
    language: 'en',
    characteristics: 'public.x',
  });
  t.regex(video?.lastConfigChanged ?? '', LOCAL_TIME);
});

test('the connection is asked for at every call; an address and its port go together', async (t) => {
  const { call, registry } = await openApi(t);
  let connection: Connection | undefined;
  publish(registry, 's', [VIDEO], { url: 'rtmp://a/app/s', connection: () => connection });
  const input = async () => ((await call('GET', `${PATH}/s`)).body?.response as StreamInfo).input;
  t.is((await input()).connection, undefined);
  t.is((await input()).sourceUrl, 'rtmp://a/app/s');
  connection = {
    transport: 'TCP',
    protocol: 'TCP',
    localAddress: '127.0.0.1',
    localPort: 1935,
    remoteAddress: '203.0.113.7',
    remotePort: 5,
  };
  t.deepEqual((await input()).connection, connection);
  connection = { ...connection, transport: 'TURN', protocol: 'UDP', localPort: undefined };
  t.deepEqual((await input()).connection, {
    transport: 'TURN',
    protocol: 'UDP',
    remoteAddress: '203.0.113.7',
    remotePort: 5,
  });
});

test("no publisher's address is shown with PrivacyProtection", async (t) => {
  const registry = sampleRegistry();
  const app = Fastify();
  await app.register(apiRoutes({ ...(await apiOptions({}, registry)), hidesClients: true }));
  t.teardown(() => app.close());
  const here = { transport: 'TCP', protocol: 'TCP', localAddress: '127.0.0.1', localPort: 1935 } as const;
  const connection = () => ({ ...here, remoteAddress: '203.0.113.7', remotePort: 5 });
  publish(registry, 's', [VIDEO], { url: 'rtmp://a/app/s', connection });
  const headers = { authorization: basic(TOKEN) };
  const { body, statusCode } = await app.inject({ url: `${PATH}/s`, headers });
  t.is(statusCode, 200);
  const { response } = JSON.parse(body) as { response: StreamInfo };
  t.deepEqual(response.input.connection, { ...here, remoteAddress: 'xxx.xxx.xxx.xxx', remotePort: 0 });
});

test('no connection of a pulled stream is shown', async (t) => {
  const { call, registry } = await openApi(t);
  const connection = () => ({ transport: 'TCP', protocol: 'TCP' }) as const;
  publish(registry, 'camera', [VIDEO], { type: 'RtspPull', kind: 'rtsppull', url: 'rtsp://a/live', connection });
  publish(registry, 'origin', [VIDEO], { type: 'Ovt', kind: 'ovt', url: 'ovt://a/app/s', connection });
  for (const name of ['camera', 'origin']) {
    const { input } = (await call('GET', `${PATH}/${name}`)).body?.response as StreamInfo;
    t.deepEqual(Object.keys(input).sort(), ['createdTime', 'sourceType', 'sourceUrl', 'tracks']);
  }
});

test('outputs show their tracks and playlists', async (t) => {
  const { call, registry } = await openApi(t);
  const input = publish(registry, 's', [VIDEO, AUDIO]);
  const output = registry.vhost('default').application('app').addOutput(input, 's_out');
  output.setTracks([{ ...VIDEO, name: 'bypass_video', bypass: true, bitrate: 0 }]);
  const options = {
    webrtcAutoAbr: true,
    webrtcAudioOnlyFallback: false,
    hlsChunklistPathDepth: -1,
    enableTsPackaging: false,
  };
  const renditions = [{ name: 'hd', videoVariantName: 'bypass_video' }];
  output.addPlaylist({ name: 'abr', fileName: 'master', options, renditions });
  output.addPlaylist({ options, renditions: [] });
  const { body } = await call('GET', `${PATH}/s`);
  const [shown, ...others] = (body?.response as StreamInfo).outputs;
  t.deepEqual(others, []);
  t.is(shown?.name, 's_out');
  t.deepEqual(shown?.playlists, [
    { name: 'abr', fileName: 'master', options, renditions },
    { options, renditions: [] },
  ]);
  t.is(shown?.tracks.length, 1);
  t.like(shown?.tracks[0], { id: 0, name: 'bypass_video', type: 'Video' });
  t.like(shown?.tracks[0]?.video, { bypass: true, codecStatus: 'Ready', codecModule: undefined });
});

test('deleting a stream disconnects its source and takes it off the list', async (t) => {
  const { call, registry } = await openApi(t);
  const input = publish(registry, 's', [VIDEO]);
  const reason = new Promise<string>((resolve) => input.once('close', resolve));
  const { status, body } = await call('DELETE', `${PATH}/s`, { 'content-type': 'application/json' });
  t.is(status, 200);
  t.deepEqual(body as unknown, { message: 'OK', statusCode: 200 });
  t.is(await reason, 'deleted by the management API');
  t.deepEqual((await call('GET', PATH)).body?.response, []);
  t.is((await call('DELETE', `${PATH}/s`)).status, 404);
  t.is((await call('DELETE', '/v1/vhosts/default/apps/none/streams/s')).status, 404);
});

test('statistics of the server, virtual host, application and stream', async (t) => {
  const { call, registry } = await openApi(t);
  const input = publish(registry, 's', [VIDEO]);
  input.counters.received(1000);
  input.counters.sent(300);
  const gone = input.counters.viewer('llhls');
  input.counters.viewer('webrtc');
  gone();
  const bases = ['', '/vhosts/default', '/vhosts/default/apps/app', '/vhosts/default/apps/app/streams/s'];
  for (const base of bases) {
    const { status, body } = await call('GET', `/v1/stats/current${base}`);
    t.is(status, 200);
    const { createdTime, lastRecvTime, lastSentTime, lastUpdatedTime, maxTotalConnectionTime, ...rest } =
      body?.response as Record<string, string>;
    for (const time of [createdTime, lastRecvTime, lastSentTime, lastUpdatedTime, maxTotalConnectionTime]) {
      t.regex(time ?? '', LOCAL_TIME);
    }
    // A throughput is of the second that passed, which is not this test's to know.
    const [throughputs, numbers] = [true, false].map((wanted) =>
      Object.fromEntries(Object.entries(rest).filter(([name]) => name.includes('Throughput') === wanted)),
    );
    t.deepEqual(Object.keys(throughputs ?? {}).sort(), [
      'avgThroughputIn',
      'avgThroughputOut',
      'lastThroughputIn',
      'lastThroughputOut',
      'maxThroughputIn',
      'maxThroughputOut',
    ]);
    t.deepEqual(numbers as unknown, {
      connections: { file: 0, hlsv3: 0, llhls: 0, ovt: 0, push: 0, srt: 0, thumbnail: 0, webrtc: 1 },
      totalBytesIn: 1000,
      totalBytesOut: 300,
      totalConnections: 1,
      maxTotalConnections: 2,
    });
  }
  t.like((await call('GET', '/v1/stats/current/vhosts/second')).body?.response as object, { totalBytesIn: 0 });
});

test('tracks that are passed on as they come are shown as bypassed and ready, whatever the way', async (t) => {
  const { call, registry } = await openApi(t);
  const application = registry.vhost('default').application('app');
  const log = pino({ level: 'silent' });
  const inventory = new CodecInventory({ log, env: { KILN_FFMPEG: '/nowhere/ffmpeg' } });
  const options = { replace: false, maxConnections: 0 };
  const passed = application.publish('passed', { type: 'Rtmp', kind: 'rtmp' }, { ...options, isPassthrough: true });
  new Passthrough(application, passed, (reason) => passed.close(reason));
  const profiled = application.publish('profiled', { type: 'Rtmp', kind: 'rtmp' }, options);
  attachOutputs(profiled, application, { log, inventory, folder: '/' });
  const bare = registry.vhost('default').application('bare');
  const unprofiled = bare.publish('unprofiled', { type: 'Rtmp', kind: 'rtmp' }, options);
  attachOutputs(unprofiled, bare, { log, inventory, folder: '/' });
  const aac = { ...AUDIO, config: buildAudioSpecificConfig({ objectType: 2, samplerate: 48_000, channels: 2 }) };
  for (const input of [passed, profiled, unprofiled]) input.setTracks([VIDEO, aac]);
  for (const path of [`${PATH}/passed`, `${PATH}/profiled`, '/v1/vhosts/default/apps/bare/streams/unprofiled']) {
    const { body } = await call('GET', path);
    const { input, outputs } = body?.response as StreamInfo;
    t.deepEqual(
      input.tracks.map((track) => (track.video ?? track.audio)?.bypass),
      [false, false],
    );
    const shown = outputs[0]?.tracks.map(({ video, audio }) => video ?? audio) ?? [];
    const passedOn = shown.filter((track) => track?.codec !== 'OPUS');
    t.is(passedOn.length, 2, path);
    for (const track of passedOn) {
      t.like(track, { bypass: true, codecStatus: 'Ready' });
      t.false(Object.hasOwn(track ?? {}, 'codecModule'));
    }
  }
  for (const input of [passed, profiled, unprofiled]) input.close('the test is over');
});
