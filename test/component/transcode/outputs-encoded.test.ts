import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { Flow } from '../../../src/core/counters.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry, type AlertMessage } from '../../../src/core/registry.ts';
import type { Session } from '../../../src/core/session.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { createLogger } from '../../../src/log/log.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { attachOutputs } from '../../../src/transcode/outputs.ts';
import { LLHLS } from '../../../src/publishers/hls/ll/index.ts';
import { until } from '../../support/time/until.ts';
import { RTMP, Sink, vhostConfig } from '../../unit/core/support.ts';
import { makeClip, secondsOf } from '../../unit/transcode/sources.ts';
import { writeScript } from '../../support/programs/script.ts';

const clip = makeClip({ width: 160, height: 90, seconds: 2 });
/** Of the clip: its sound begins in front of its picture. */
const START_SECONDS = 1024 / 48_000;
const log = createLogger('silent');

const PASSED = { name: 'source', bypass: true };
const SMALL = { name: 'small', codec: 'h264', width: 80, height: 48, bitrate: 100_000 };
const OPUS = { name: 'opus', codec: 'opus', bitrate: 64_000 };
const profile = (videos: object[], audios: object[] = []) => ({
  name: 'p',
  outputStreamName: 'o',
  encodes: { videos, audios },
});

/** A live input with this output profile, before its tracks are known. */
function open(t: ExecutionContext, outputProfile: object, env: NodeJS.ProcessEnv = process.env, more: object = {}) {
  const registry = new Registry();
  const announced: OutputStream[] = [];
  const alerts: AlertMessage[] = [];
  const sink = new Sink();
  const inventory = new CodecInventory({ log, env });
  registry.on('input', (input, application) => attachOutputs(input, application, { log, inventory, folder: '.' }));
  registry.on('output', (output) => {
    announced.push(output);
    output.read(sink);
  });
  registry.on('alert', ({ messages }) => alerts.push(...messages));
  const applications = [
    {
      name: 'app',
      type: 'live',
      providers: {},
      publishers: {},
      outputProfiles: { ...more, outputProfile: [outputProfile] },
    },
  ];
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications }), true);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: true, maxConnections: 0 });
  t.teardown(() => input.close('the test is over'));
  return {
    registry,
    input,
    inventory,
    announced,
    alerts,
    /** What a publisher got that reads the output from its announcement on. */
    sink,
    /** The output stream, announced or not. */
    output: () => application.outputs.get('o') as OutputStream,
    /** What came of a track. */
    of: (name: string) => sink.packets.filter(({ track }) => track.name === name),
  };
}

const viewer = (kind: Session['kind']): Session => ({
  id: kind,
  kind,
  createdTime: 0,
  out: new Flow(0),
  kick: () => {},
});

/** Feeds some seconds of the clip, all at once. */
async function feed(input: InputStream, seconds: number): Promise<Packet[]> {
  const source = await clip;
  input.setTracks([source.video, source.audio]);
  const packets = source.packets.filter((packet) => secondsOf(packet) < seconds + START_SECONDS);
  for (const packet of packets) input.write(packet);
  return packets;
}

const named = (tracks: readonly Track[]) => tracks.map(({ name, encoder }) => [name, encoder?.status]);

/** An ffmpeg that tells what it can do, and then does nothing. */
async function stuckFfmpeg(t: ExecutionContext): Promise<NodeJS.ProcessEnv> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-stuck-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = writeScript(join(folder, 'ffmpeg'), 'case "$*" in *pipe:0*) exec sleep 60;; *) exec ffmpeg "$@";; esac');
  return { ...process.env, KILN_FFMPEG: file };
}

test.serial(
  'audio that only WebRTC uses is encoded while it has viewers: from when they come, not from the last key frame',
  async (t) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const { input, inventory, announced, output, of } = open(t, profile([PASSED], [OPUS]));
    const { packets } = await clip;
    const rests = () => until('no encoder runs', () => inventory.runs.running.size === 0);
    const write = (from: number, to: number) => {
      for (const packet of packets) if (secondsOf(packet) >= from && secondsOf(packet) < to) input.write(packet);
    };
    await feed(input, 0.6);
    await until('it is announced', () => announced.length > 0);
    t.deepEqual(named(output().tracks), [
      ['source', undefined],
      ['opus', 'Ready'],
    ]);
    t.is(inventory.runs.started, 0);
    write(0.7, 1.4);
    const player = output().addSession({ ...viewer('llhls'), byPlaylist: true });
    t.is(inventory.runs.running.size, 0, 'HLS takes what playlists name');
    const before = of('opus').length;
    const gone = output().addSession(viewer('webrtc'));
    write(1.4, 2);
    await until('audio comes', () => of('opus').length > before + 10);
    const first = secondsOf(of('opus')[before] as Packet);
    t.true(first > 1.3 && first < 1.5, `it begins at ${first}`);
    gone();
    mock.timers.tick(9000);
    t.is(inventory.runs.running.size, 1, 'for who comes right after');
    mock.timers.tick(1000);
    await rests();
    const leave = output().addRelay();
    t.is(inventory.runs.running.size, 1, 'a recording takes all tracks');
    leave();
    player();
  },
);

for (const channel of [1, 2])
  test.serial(`the encoder of Opus reports the format that was predicted (${channel} channels)`, async (t) => {
    const { input, inventory, announced, output, of } = open(t, profile([PASSED], [{ ...OPUS, channel }]));
    await feed(input, 1);
    await until('it is announced', () => announced.length > 0);
    t.is(inventory.runs.started, 0);
    const [, predicted] = output().tracks;
    output().addRelay();
    const { packets } = await clip;
    for (const packet of packets) if (secondsOf(packet) >= 1) input.write(packet);
    await until('audio comes', () => of('opus').length > 0);
    t.is(of('opus')[0]?.track, predicted);
    t.like(predicted?.encoder, { module: 'libopus', status: 'Ready' });
  });

test.serial('an encoder whose format only it can report runs until then, and for a viewer right after', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { input, inventory, announced, of } = open(t, profile([PASSED], [{ ...OPUS, name: 'aac', codec: 'aac' }]));
  await feed(input, 1);
  await until('it is announced', () => announced.length > 0);
  await until('audio comes', () => of('aac').length > 10);
  mock.timers.tick(9000);
  t.is(inventory.runs.running.size, 1);
  mock.timers.tick(1000);
  await until('no encoder runs', () => inventory.runs.running.size === 0);
});

test.serial(
  "sound that a publisher's own playlist names, made when the output is announced, is encoded all the time",
  async (t) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const { registry, input, inventory, announced, of } = open(t, profile([PASSED], [OPUS]));
    registry.on('output', (output) => LLHLS.addDefaultPlaylist(output));
    await feed(input, 1);
    await until('it is announced', () => announced.length > 0);
    for (const packet of (await clip).packets) if (secondsOf(packet) >= 1) input.write(packet);
    await until('audio comes', () => of('opus').length > 10);
    mock.timers.tick(60_000);
    t.is(inventory.runs.running.size, 1);
  },
);

test.serial('a track that comes late keeps no encoder busy when it has reported its format', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const { input, inventory, announced, output } = open(t, profile([PASSED], [{ ...OPUS, name: 'aac', codec: 'aac' }]));
  const { video, packets } = await clip;
  input.setTracks([video]);
  for (const packet of packets) if (packet.track === video && secondsOf(packet) < 1) input.write(packet);
  await until('it is announced', () => announced.length > 0);
  await feed(input, 2);
  await until('the sound is there', () => output().tracks.length === 2);
  mock.timers.tick(10_000);
  await until('no encoder runs', () => inventory.runs.running.size === 0);
  t.is(output().tracks.length, 2);
});

test.serial('an encoder on demand waits for no track of which nothing comes', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const audios = [{ ...OPUS, name: 'aac', codec: 'aac' }];
  const { input, inventory, announced, output } = open(t, profile([SMALL], audios), process.env, { onDemand: true });
  const { video, audio, packets } = await clip;
  input.setTracks([video, audio]);
  for (const packet of packets) if (packet.track === video) input.write(packet);
  await until('there is a picture', () => inventory.runs.running.size === 1);
  mock.timers.tick(5000);
  await until('it is announced', () => announced.length > 0);
  mock.timers.tick(10_000);
  await until('no encoder runs', () => inventory.runs.running.size === 0);
  t.true(output().resting);
});

test.serial('audio that a playlist names is encoded all the time', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const playlists = [{ fileName: 'both', renditions: [{ name: 'both', video: 'source', audio: 'opus' }] }];
  const { input, inventory, announced } = open(t, { ...profile([PASSED], [OPUS]), playlists });
  await feed(input, 1);
  await until('it is announced', () => announced.length > 0);
  mock.timers.tick(60_000);
  t.is(inventory.runs.running.size, 1);
});

test.serial(
  'an output is held back until its encoders have reported their formats; then all of it is there, from the first key frame',
  async (t) => {
    // however long they take
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const { input, announced, output, of } = open(t, profile([PASSED, SMALL], [OPUS]));
    const fed = await feed(input, 2);
    t.deepEqual(announced, []);
    t.deepEqual(named(output().tracks), []);
    t.deepEqual(named(output().awaited), [
      ['source', undefined],
      ['small', undefined],
      ['opus', undefined],
    ]);
    await until('it is announced', () => announced.length > 0);
    t.deepEqual(named(output().tracks), [
      ['source', undefined],
      ['small', 'Ready'],
      ['opus', 'Ready'],
    ]);
    t.deepEqual(output().awaited, []);
    t.deepEqual(
      of('source').map(({ data }) => data),
      fed.filter(({ track }) => track.type === 'video').map(({ data }) => data),
    );
    await until('what is encoded comes', () => of('small').length > 0 && of('opus').length > 0);
    const [first] = of('small');
    t.true(first?.key);
    t.is(first?.pts, of('source')[0]?.pts);
  },
);

test('an encoder that reports nothing holds up the others for some seconds and no longer', async (t) => {
  const { input, announced, output, of, alerts } = open(t, profile([PASSED, SMALL]), await stuckFfmpeg(t));
  const fed = await feed(input, 2);
  await until('it is announced', () => announced.length > 0);
  t.deepEqual(named(output().tracks), [['source', undefined]]);
  t.deepEqual(named(output().awaited), [['small', undefined]], 'it may come yet');
  t.is(of('source').length, fed.filter(({ track }) => track.type === 'video').length);
  t.deepEqual(alerts, []);
});

test('packets that are held back until outputs start are bounded', async (t) => {
  const { input, announced, sink } = open(t, profile([PASSED, SMALL]), await stuckFfmpeg(t));
  const first = (await feed(input, 0.01)).find(({ track }) => track.type === 'video') as Packet;
  const data = Buffer.alloc(4 * 1024 * 1024);
  let count = 0;
  while (announced.length === 0 && count < 20) {
    count++;
    input.write({ ...first, dts: count * 3600, pts: count * 3600, key: false, data });
  }
  t.is(count, 8);
  t.is(sink.packets.length, count + 1);
});

test('an encoded audio track has the language of its source, also when that changes', async (t) => {
  const { input, announced, output, alerts } = open(t, profile([PASSED], [OPUS]));
  await feed(input, 1);
  await until('both are there', () => announced.length > 0 && output().tracks.length === 2);
  const [, before] = output().tracks;
  t.is(before?.language, undefined);
  input.setTracks(input.tracks.map((track) => (track.type === 'audio' ? { ...track, language: 'de' } : track)));
  const [, opus] = output().tracks;
  t.deepEqual(opus, { ...before, language: 'de' } as Track);
  input.setTracks([...input.tracks]);
  t.is(output().tracks[1], opus);
  t.is(output().measured(1)?.configChangeCount, 0);
  t.deepEqual(alerts, []);
});

test('an encode that is impossible has failed, which is reported once, and the others go on', async (t) => {
  const { input, announced, output, alerts } = open(
    t,
    profile([PASSED, SMALL, { ...SMALL, name: 'bad', codec: 'foo' }]),
  );
  await feed(input, 1);
  await until('both are there', () => announced.length > 0 && output().tracks.length === 2);
  t.deepEqual(named(output().tracks), [
    ['source', undefined],
    ['small', 'Ready'],
  ]);
  t.deepEqual(named(output().awaited), [['bad', 'Failed']]);
  input.setTracks([...input.tracks]);
  t.deepEqual(
    alerts.map(({ code, description }) => [code, description]),
    [['EGRESS_TRANSCODE_FAILED_ENCODING', 'bad of output profile p is not encoded: unknown codec foo']],
  );
});

test('without an ffmpeg every encode has failed and the source is put out at once', async (t) => {
  const { input, announced, output, alerts, of } = open(t, profile([PASSED, SMALL], [OPUS]), {
    KILN_FFMPEG: '/bin/true',
  });
  const fed = await feed(input, 1);
  await until('it is announced', () => announced.length > 0);
  t.deepEqual(named(output().tracks), [['source', undefined]]);
  t.deepEqual(named(output().awaited), [
    ['small', 'Failed'],
    ['opus', 'Failed'],
  ]);
  t.is(of('source').length, fed.filter(({ track }) => track.type === 'video').length);
  t.deepEqual(
    alerts.map(({ code }) => code),
    ['EGRESS_TRANSCODE_FAILED_ENCODING', 'EGRESS_TRANSCODE_FAILED_ENCODING'],
  );
});

test('an interruption of all encodes by a failing encoder is reported once, and then which one failed and why', async (t) => {
  const large = { name: 'large', codec: 'vp8', width: 16_384, height: 8, bitrate: 50_000 };
  const { input, announced, output, alerts } = open(t, profile([PASSED, SMALL, large], [OPUS]));
  await feed(input, 2);
  await until('it is announced', () => announced.length > 0);
  const givenUp = () => alerts.filter(({ description }) => description.includes('is not encoded: '));
  await until('it is given up', () => givenUp().length > 0);
  await until('the others work', () => output().awaited.length === 1);
  t.deepEqual(
    givenUp().map(({ description }) => /^large of output profile p is not .* range \[1\.\.16383\]/.test(description)),
    [true],
  );
  t.deepEqual(
    output().tracks.map(({ name }) => name),
    ['source', 'small', 'opus'],
  );
  const together =
    'encoding of small of output profile p, large of output profile p, opus of output profile p is interrupted: ';
  t.true(alerts[0]?.description.startsWith(together), alerts[0]?.description);
});

test('an output of nothing but what cannot be encoded is listed and has nothing to read', async (t) => {
  const { input, output, sink } = open(t, profile([{ ...SMALL, codec: 'foo' }]));
  await feed(input, 1);
  t.deepEqual(named(output().tracks), []);
  t.deepEqual(named(output().awaited), [['small', 'Failed']]);
  t.deepEqual(sink.packets, []);
});
