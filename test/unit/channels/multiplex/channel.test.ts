import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../../src/core/packet.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { StartCaches } from '../../../../src/core/start-caches.ts';
import type { OutputStream } from '../../../../src/core/output-stream.ts';
import { toSeconds } from '../../../../src/core/timebase.ts';
import type { Track } from '../../../../src/core/track.ts';
import { StreamChanges } from '../../../../src/directory/stream-changes.ts';
import { MultiplexChannel } from '../../../../src/channels/multiplex/channel.ts';
import type { MultiplexSpec } from '../../../../src/channels/multiplex/spec.ts';
import { LiveSources } from '../../../../src/channels/sources/live-sources.ts';
import { addVhost, type VhostShape } from '../../../support/server/live.ts';
import { multiplex, playlist, source, trackItem } from '../../../support/channels/multiplex.ts';
import {
  audioPackets,
  audioTrack,
  dataTrack,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';
import { seeded } from '../../codecs/vectors.ts';

const VIDEO = videoTrack({ name: 'v' });
const AUDIO = audioTrack({ name: 'a' });
const PULLING = 'Multiplex Channel : #default#app/channel: ';
const SPLIT = multiplex([source('cam', [trackItem('v', 'main')]), source('mic', [trackItem('a', 'sound')])]);

/** A packet that was sent, and when it could have arrived at the earliest, in milliseconds of the monotonic clock. */
interface Sent {
  readonly packet: Packet;
  readonly at: number;
}

interface Sending {
  readonly tracks?: readonly Track[];
  /** Seconds of media time that it begins with. */
  readonly from?: number;
  /** Milliseconds that a packet is late. */
  readonly jitter?: () => number;
  /** Milliseconds that an encoder takes for what it puts out. */
  readonly encodes?: number;
}

/** @param turn of a channel that stands by */
async function open(t: ExecutionContext, spec: MultiplexSpec, shape: VhostShape = {}, turn?: () => Promise<void>) {
  virtualTime(t);
  const registry = new Registry();
  addVhost(registry, shape);
  const application = registry.vhost('default').application('app');
  const changes = new StreamChanges(registry, { listen: () => () => {} });
  const caches = new StartCaches(registry, 'channel');
  const loop: { chain?: readonly string[] } = {};
  const graph = { chain: async () => loop.chain };
  const sources = new LiveSources({ registry, find: async () => undefined, changes, caches, graph });
  const stop = new AbortController();
  const got: Packet[] = [];
  const lost: string[] = [];
  const naming: { done?: Promise<void> } = {};
  const options = { replace: false, maxConnections: 0, isPassthrough: spec.bypassTranscoder };
  const channel = new MultiplexChannel({
    application,
    name: 'channel',
    spec,
    sources,
    publish: async () => {
      await naming.done;
      const input = application.publish('channel', { type: 'Multiplex', kind: 'multiplex' }, options);
      input.read({ packet: (packet) => void got.push(packet), close: (reason) => void lost.push(reason) });
      return input;
    },
    passes: () => true,
    turn,
    leave: (input, reason) => input.close(reason),
    log: pino({ level: 'silent' }),
  });
  const over = channel.run(stop.signal);
  t.teardown(async () => {
    stop.abort();
    await over;
    changes.close();
    caches.close();
    registry.close('the test is over');
  });
  const until = async (what: string, probe: () => boolean): Promise<void> => {
    for (let i = 0; !probe(); i++) {
      if (i > 30_000) throw new Error(`not in time: ${what}: ${JSON.stringify(channel.report)}`);
      await delay(1);
    }
  };
  /** Publishes a stream that sends in virtual real time until it is closed. */
  const publish = (
    name: string,
    { tracks = [VIDEO, AUDIO], from = 0, jitter = () => 0, encodes = 0 }: Sending = {},
  ) => {
    const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    input.setTracks(tracks);
    const output = application.addOutput(input, name);
    output.setTracks(tracks);
    application.announce(output);
    const sent: Sent[] = [];
    const base = performance.now() - from * 1000;
    const lists = tracks.map((track) => {
      const span = { from, to: from + 60 };
      if (track.type === 'video') return videoPackets(track, span);
      return track.type === 'audio' ? audioPackets(track, span) : [];
    });
    const packets = interleaved(...lists);
    let last = 0;
    const run = async (): Promise<void> => {
      for (const packet of packets) {
        const at = base + seconds(packet) * 1000;
        last = Math.max(last, at + jitter());
        while (performance.now() < last) await delay(1);
        if (input.closed) return;
        const track = output.tracks.find(({ id }) => id === packet.track.id);
        if (track === undefined) continue;
        sent.push({ packet, at });
        input.write(packet);
        const write = (): void => output.write({ ...packet, track });
        if (encodes > 0) setTimeout(write, encodes);
        else write();
      }
    };
    void run();
    return { input, output, sent };
  };
  const playing = (): Promise<void> => until('it plays', () => channel.report.state === 'Playing');
  return { registry, application, channel, stop, over, got, lost, loop, naming, until, publish, playing };
}

function seconds({ dts, track }: Packet): number {
  return toSeconds(dts, track.timebase);
}

/** Milliseconds from the channel's time to when its packets were sent, of each that came through. */
function distances(got: readonly Packet[], sent: readonly Sent[], name: string): number[] {
  const byData = new Map(sent.map((one) => [one.packet.data, one]));
  return got
    .filter(({ track }) => track.name === name)
    .map((packet) => (byData.get(packet.data)?.at as number) - seconds(packet) * 1000);
}

const spread = (values: readonly number[]): number => Math.max(...values) - Math.min(...values);

test.serial('a multiplex channel waits for each stream and each named track, and says for which', async (t) => {
  const { channel, publish, until, playing, application } = await open(t, SPLIT);
  const waits = (text: string): Promise<void> =>
    until(text, () => channel.report.pullingMessage === `${PULLING}Wait for ${text}`);
  await waits('stream stream://default/app/cam');
  const cam = publish('cam', { tracks: [AUDIO] });
  await waits('track v of stream stream://default/app/cam');
  t.is(channel.report.state, 'Pulling');
  cam.output.setTracks([VIDEO, AUDIO]);
  cam.input.close('it comes back');
  publish('cam');
  await waits('stream stream://default/app/mic');
  t.is(application.stream('channel'), undefined);
  publish('mic', { tracks: [AUDIO] });
  await playing();
  t.deepEqual(channel.report, { state: 'Playing' });
  const { tracks } = application.output('channel') as OutputStream;
  t.deepEqual(
    tracks.map(({ id, name, bypass, type }) => ({ id, name, bypass, type })),
    [
      { id: 0, name: 'main', bypass: true, type: 'video' },
      { id: 1, name: 'sound', bypass: true, type: 'audio' },
    ],
  );
});

for (const [name, latest] of [
  ['steady', 0],
  ['up to 25 ms late', 25],
  ['up to 100 ms late', 100],
] as const) {
  test.serial(`sources of any time are put beside each other as they arrive, ${name}`, async (t) => {
    for (const seed of [1, 2, 3]) {
      const { publish, playing, got, until, stop, over } = await open(t, SPLIT);
      const random = seeded(seed);
      const jitter = (): number => random() * latest;
      const cam = publish('cam', { from: 5000, jitter });
      await delay(700 * seed);
      const mic = publish('mic', { tracks: [AUDIO], from: 17 });
      await playing();
      await until('some seconds have come', () => got.length > 400);
      const video = distances(got, cam.sent, 'main');
      const audio = distances(got, mic.sent, 'sound');
      t.true(video.length > 100 && audio.length > 100);
      t.true(spread([...video, ...audio]) <= 40, `seed ${seed}: ${spread([...video, ...audio])} ms`);
      stop.abort();
      await over;
    }
  });
}

test.serial(
  'time that a source spends in an encoder of this node does not part the tracks of a multiplex channel',
  async (t) => {
    const { publish, playing, got, until } = await open(t, SPLIT);
    const cam = publish('cam', { from: 3, encodes: 700 });
    const mic = publish('mic', { tracks: [AUDIO] });
    await playing();
    await until('some seconds have come', () => got.length > 400);
    const apart = spread([...distances(got, cam.sent, 'main'), ...distances(got, mic.sent, 'sound')]);
    t.true(apart <= 40, `${apart} ms`);
  },
);

test.serial('a multiplex channel begins with a key frame at time 0, and all tracks of that time', async (t) => {
  const { publish, playing, got, until } = await open(t, SPLIT);
  publish('mic', { tracks: [AUDIO] });
  await delay(300);
  publish('cam');
  await playing();
  await until('it goes on', () => got.length > 200);
  const [video, audio] = ['main', 'sound'].map((name) => got.filter(({ track }) => track.name === name));
  t.is(video?.[0]?.dts, 0);
  t.true(video?.[0]?.key);
  t.true((audio?.[0]?.dts ?? Infinity) < 1024 + 48, 'within a frame of sound');
  for (const packets of [video, audio])
    t.true(packets?.every((packet, i) => i === 0 || packet.dts > (packets[i - 1]?.dts as number)));
});

test.serial('pictures whose key frames come at nearly the same time begin together', async (t) => {
  const two = multiplex([source('cam', [trackItem('v', 'main')]), source('low', [trackItem('v', 'low')])]);
  for (const lag of [3, 40, 120, 960, 997]) {
    const { publish, playing, got, until, stop, over } = await open(t, two);
    publish('cam', { tracks: [VIDEO] });
    await delay(lag);
    publish('low', { tracks: [VIDEO] });
    await playing();
    await until('it goes on', () => got.length > 100);
    const begins = ['main', 'low'].map((name) => seconds(got.find(({ track }) => track.name === name) as Packet));
    t.is(Math.min(...begins), 0, `${lag} ms`);
    t.true(Math.max(...begins) <= 0.13, `${lag} ms: ${begins.join()}`);
    stop.abort();
    await over;
  }
});

test.serial('a multiplex channel on standby begins in its turn, with the newest key frame', async (t) => {
  const turn = Promise.withResolvers<void>();
  let isReady = false;
  const { publish, got, until, playing, application } = await open(t, SPLIT, {}, async () => {
    isReady = true;
    await turn.promise;
  });
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await until('it is ready', () => isReady);
  await delay(6500);
  t.is(application.stream('channel'), undefined);
  turn.resolve();
  await playing();
  const [first] = got.filter(({ track }) => track.name === 'main');
  const keys = cam.sent.filter(({ packet: { key, track } }) => key && track.type === 'video');
  t.is(first?.data, keys.at(-1)?.packet.data);
  t.is(first?.dts, 0);
});

test.serial('tracks of one source keep their distances exactly', async (t) => {
  const both = multiplex([source('cam', [trackItem('v', 'main'), trackItem('a', 'sound')])]);
  const { publish, playing, got, until } = await open(t, both);
  const random = seeded(9);
  const cam = publish('cam', { from: 3.3, jitter: () => random() * 30 });
  await playing();
  await until('it goes on', () => got.length > 300);
  for (const name of ['main', 'sound']) {
    const packets = got.filter(({ track }) => track.name === name);
    const sent = new Map(cam.sent.map(({ packet }) => [packet.data, packet.dts]));
    t.is(new Set(packets.map(({ dts, data }) => dts - (sent.get(data) as number))).size, 1, name);
  }
});

test.serial('events of a source pass where its track of events is named, in step with its video', async (t) => {
  const named = source('cam', [trackItem('v', 'main'), trackItem('Data', 'cues')]);
  const spec = multiplex([named, source('mic', [trackItem('a', 'sound')])]);
  const { publish, playing, until, got } = await open(t, spec);
  const sources = [publish('cam', { from: 100 }), publish('mic', { from: 7 })];
  await playing();
  const events = dataTrack();
  for (const { output, sent } of sources) {
    output.setTracks([...output.tracks, events]);
    const { packet } = sent.findLast(({ packet: { track } }) => track.type === 'video') as Sent;
    output.write({ ...packet, track: events, data: Buffer.from(output.name) });
  }
  const seconds = 2;
  await until('it goes on', () => (got.at(-1)?.dts ?? 0) > seconds * VIDEO.timebase.den);
  const passed = got.filter(({ track }) => track.type === 'data');
  t.deepEqual(
    passed.map(({ track, data }) => [track.name, data.toString()]),
    [['cues', 'cam']],
  );
  const beside = got.filter(({ track }) => track.type === 'video').map(({ pts }) => pts);
  t.true(beside.includes(passed[0]?.pts ?? NaN), 'at the time of the frame that it was sent with');
});

test.serial('a multiplex channel ends with its source, and goes on when the source is back', async (t) => {
  const { publish, playing, channel, lost, until, application } = await open(t, SPLIT);
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  const first = application.stream('channel');
  cam.input.close('the publisher left');
  await until('it pulls', () => channel.report.state === 'Pulling');
  t.deepEqual(lost, ['stream stream://default/app/cam has ended: the publisher left']);
  t.false(first?.continuity.over, 'players wait for what continues it');
  await until('it waits for it', () => channel.report.pullingMessage?.endsWith('/cam') === true);
  publish('cam');
  await playing();
  t.not(application.stream('channel'), first);
});

test.serial('a track that changes its format goes on under its id, and one that is gone ends the stream', async (t) => {
  const { publish, playing, got, lost, until, application } = await open(t, SPLIT);
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  const before = application.stream('channel')?.tracks[0] as Track;
  cam.output.setTracks([videoTrack({ name: 'v', width: 320, height: 180 }), AUDIO]);
  const after = application.stream('channel')?.tracks[0] as Track;
  t.like(after, { id: before.id, name: 'main', width: 320 });
  await until('its packets come', () => got.at(-1)?.track === after);
  cam.output.setTracks([AUDIO]);
  await until('it has ended', () => lost.length > 0);
  t.deepEqual(lost, ['stream stream://default/app/cam has no track v any more']);
});

test.serial('a channel past the output profiles is put out with its playlists, another is left to them', async (t) => {
  const playlists = [playlist('abr', [{ name: 'hd', video: 'main', audio: 'sound' }])];
  const { publish, playing, application } = await open(t, { ...SPLIT, playlists });
  publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  const output = application.output('channel');
  t.like(output?.playlist('abr'), {
    renditions: [{ name: 'hd', videoVariantName: 'main', audioVariantName: 'sound' }],
  });
});

test.serial('a multiplex channel that the output profiles apply to has no output stream of its own', async (t) => {
  const { publish, playing, application } = await open(t, { ...SPLIT, bypassTranscoder: false });
  publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  t.is(application.stream('channel')?.tracks.length, 2);
  t.is(application.output('channel'), undefined);
});

test.serial('a multiplex channel ends with its signal, at once', async (t) => {
  const { publish, playing, channel, stop, over, application } = await open(t, SPLIT);
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  t.true(cam.output.watched);
  stop.abort();
  await over;
  t.deepEqual(channel.report, { state: 'Stopped' });
  t.is(application.stream('channel'), undefined);
  t.false(cam.output.watched);
  t.is(cam.input.readers, 0);
});

test.serial('a multiplex channel waits as long as another stream has its name', async (t) => {
  const { publish, playing, channel, until, application } = await open(t, SPLIT);
  const taken = publish('channel');
  publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await until('it says why', () => channel.report.pullingMessage?.includes('already exists') === true);
  t.is(application.stream('channel'), taken.input);
  taken.input.close('it is over');
  await playing();
  t.is(application.stream('channel')?.source.type, 'Multiplex');
});

test.serial('a source that goes while the name is being taken is waited for again', async (t) => {
  const { publish, playing, channel, until, naming, got } = await open(t, SPLIT);
  const { promise, resolve } = Promise.withResolvers<void>();
  naming.done = promise;
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await until('it takes its name', () => channel.report.pullingMessage?.includes('the name') === true);
  cam.input.close('the publisher left');
  resolve();
  await until('it waits', () => channel.report.pullingMessage?.includes('Wait for stream') === true);
  t.deepEqual(got, []);
  publish('cam');
  await playing();
  await until('both come', () => ['main', 'sound'].every((name) => got.some(({ track }) => track.name === name)));
  t.true(got.every(({ dts }) => Number.isSafeInteger(dts)));
});

test.serial('a multiplex channel does not read itself', async (t) => {
  const own = multiplex([source('channel', [trackItem('v', 'main')])]);
  const { channel, publish, until } = await open(t, own);
  await until('it says why', () => channel.report.pullingMessage?.includes('is made of the channel') === true);
  publish('channel');
  await delay(3000);
  t.is(channel.report.state, 'Pulling');
});

test.serial('a channel that would play itself through others pulls nothing', async (t) => {
  const { channel, publish, playing, lost, loop, until } = await open(t, SPLIT);
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  loop.chain = ['default/app/channel', 'default/app/cam', 'default/app/channel'];
  cam.input.close('it is another now');
  const text =
    'is made of the channel that should read it: default/app/channel -> default/app/cam -> default/app/channel';
  await until('it says why', () => channel.report.pullingMessage === `${PULLING}stream://default/app/cam ${text}`);
  publish('cam');
  await delay(3000);
  t.is(channel.report.state, 'Pulling');
  delete loop.chain;
  await playing();
  t.is(lost.length, 1);
});

test.serial('a source that sends nothing for the configured time has ended', async (t) => {
  const providers = { multiplex: { packetSilenceTimeoutMs: 800 } } as unknown as VhostShape['providers'] & object;
  const { publish, playing, lost, until } = await open(t, SPLIT, { providers });
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  await delay(3000);
  t.deepEqual(lost, []);
  cam.output.setTracks([VIDEO, audioTrack({ id: 9, name: 'other' })]);
  cam.output.write = () => {};
  await until('it has ended', () => lost.length > 0);
  t.deepEqual(lost, ['stream stream://default/app/cam has sent nothing for 800 ms']);
});

test.serial('a viewer that needs a key frame asks the source for it', async (t) => {
  const { publish, playing, application } = await open(t, SPLIT);
  const cam = publish('cam');
  publish('mic', { tracks: [AUDIO] });
  await playing();
  let asked = 0;
  cam.input.on('keyWanted', () => asked++);
  application.output('channel')?.read({ packet: () => {} });
  t.is(asked, 1);
});
