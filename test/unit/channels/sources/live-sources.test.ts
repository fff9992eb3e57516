import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { FindOutput } from '../../../../src/core/find-output.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { Registry } from '../../../../src/core/registry.ts';
import { StartCaches } from '../../../../src/core/start-caches.ts';
import type { OutputStream } from '../../../../src/core/output-stream.ts';
import type { Track } from '../../../../src/core/track.ts';
import { kilnError } from '../../../../src/errors.ts';
import { StreamChanges } from '../../../../src/directory/stream-changes.ts';
import { ChannelError } from '../../../../src/channels/sources/error.ts';
import type { LiveSink } from '../../../../src/channels/sources/live-source.ts';
import { LiveSources, type Loops } from '../../../../src/channels/sources/live-sources.ts';
import { addVhost, goLive } from '../../../support/server/live.ts';
import { NO_LOOPS } from '../../../support/channels/no-loops.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { until } from '../../../support/time/until.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const URL = { vhost: 'default', app: 'app', stream: 'cam' };

/** Keeps what it gets. */
class Kept implements LiveSink {
  readonly packets: Packet[] = [];
  told: readonly Track[] = [];
  ended: string | undefined;
  takes = true;
  readonly #type: Track['type'] | undefined;

  constructor(type?: Track['type']) {
    this.#type = type;
  }

  tracks(tracks: readonly Track[]): readonly Track[] | void {
    this.told = tracks;
    if (this.#type !== undefined) return tracks.filter(({ type }) => type === this.#type);
  }

  packet(packet: Packet): boolean {
    this.packets.push(packet);
    return this.takes;
  }

  end(reason: string): void {
    this.ended = reason;
  }

  /** Numbers of the video frames, at 30 a second. */
  get frames(): number[] {
    return this.packets.filter(({ track }) => track.type === 'video').map(({ dts }) => dts / 3000);
  }
}

function open(t: ExecutionContext, find: FindOutput = async () => undefined, graph: Loops = NO_LOOPS) {
  const registry = new Registry();
  addVhost(registry, { applications: ['app', 'other'] });
  const changes = new StreamChanges(registry, { listen: () => () => {} });
  const caches = new StartCaches(registry, 'channel');
  const sources = new LiveSources({ registry, find, changes, caches, graph });
  const application = registry.vhost('default').application('app');
  const by = { application, name: 'channel' };
  const stop = new AbortController();
  t.teardown(() => {
    stop.abort();
    changes.close();
    caches.close();
    registry.close('the test is over');
  });
  const live = (name = 'cam', tracks: readonly Track[] = [VIDEO, AUDIO]): OutputStream => {
    const output = goLive(registry, 'app', name, tracks);
    application.announce(output);
    return output;
  };
  return { registry, application, by, sources, stop, live };
}

const media = (from: number, to: number): Packet[] =>
  interleaved(videoPackets(VIDEO, { from, to, gop: 30 }), audioPackets(AUDIO, { from, to }));

const write = (output: OutputStream, packets: readonly Packet[]): void => {
  for (const packet of packets) output.write(packet);
};

test('a stream is read from its next key frame on, with what belongs to it, until it ends', async (t) => {
  const { sources, by, stop, live } = open(t);
  const output = live();
  write(output, media(0, 0.5));
  const sink = new Kept();
  const source = await sources.open(URL, by, sink, stop.signal);
  t.deepEqual(sink.told, [VIDEO, AUDIO]);
  t.true(output.watched, 'encoders on demand run for it');
  write(output, media(0.5, 1.2));
  t.is(sink.packets[0]?.track, VIDEO, 'sound neither before the key frame');
  t.is(sink.frames[0], 30);
  output.input.close('the publisher left');
  t.is(sink.ended, 'the publisher left');
  t.false(output.watched);
  source?.close();
});

test('a reader that joins others of a source begins with the last key frame at once', async (t) => {
  const { sources, by, stop, live } = open(t);
  const output = live();
  const first = await sources.open(URL, by, new Kept(), stop.signal);
  write(output, media(0, 1.5));
  first?.close();
  t.false(output.watched);
  const sink = new Kept();
  await sources.open(URL, by, sink, stop.signal);
  t.is(sink.frames[0], 30);
  t.is(sink.frames.at(-1), 44);
  write(output, media(1.5, 1.6));
  t.deepEqual(
    sink.frames,
    Array.from({ length: 18 }, (_, i) => 30 + i),
  );
});

test('a reader of audio alone waits for no key frame and gets nothing else', async (t) => {
  const { sources, by, stop, live } = open(t);
  const output = live();
  write(output, media(0, 0.2));
  const sink = new Kept('audio');
  await sources.open(URL, by, sink, stop.signal);
  write(output, media(0.2, 0.5));
  t.true(sink.packets.length > 10);
  t.deepEqual([...new Set(sink.packets.map(({ track }) => track))], [AUDIO]);
});

test('a stream is waited for, and its application', async (t) => {
  const asked: string[] = [];
  const { registry, sources, by, stop, live } = open(t, async (_application, name) => void asked.push(name));
  const sink = new Kept();
  const opened = sources.open(URL, by, sink, stop.signal);
  await until('it is looked for', () => asked.length > 0);
  live();
  t.not(await opened, undefined);
  const later = sources.open({ ...URL, vhost: 'later' }, by, new Kept(), stop.signal);
  await setImmediate();
  addVhost(registry, { name: 'later', hostNames: ['later'] });
  const application = registry.vhost('later').application('app');
  const input = application.publish('cam', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'cam');
  output.setTracks([VIDEO]);
  application.announce(output);
  t.is((await later)?.output, output);
});

test('a stream of another node is found, when that can be reached', async (t) => {
  const there = new Registry();
  addVhost(there);
  const remote = goLive(there, 'app', 'cam');
  let reachable = false;
  const { sources, by, stop } = open(t, async () => {
    if (!reachable) throw kilnError('ownerUnreachable');
    return remote;
  });
  const opened = sources.open(URL, by, new Kept(), stop.signal);
  await setImmediate();
  reachable = true;
  t.is((await opened)?.output, remote);
});

test('a wait ends with its signal', async (t) => {
  const { sources, by, stop } = open(t);
  const opened = sources.open(URL, by, new Kept(), stop.signal);
  await setImmediate();
  stop.abort();
  t.is(await opened, undefined);
  t.is(await sources.open(URL, by, new Kept(), stop.signal), undefined);
});

test('new tracks of a source are announced, and new video waits for a key frame', async (t) => {
  const { sources, by, stop, live } = open(t);
  const output = live();
  const sink = new Kept();
  await sources.open(URL, by, sink, stop.signal);
  write(output, media(0, 0.3));
  const second = videoTrack({ id: 7, name: 'second' });
  output.setTracks([VIDEO, AUDIO, second]);
  t.is(sink.told.length, 3);
  write(output, videoPackets(second, { from: 0.3, to: 1.1 }));
  const seconds = sink.packets.filter(({ track }) => track === second);
  t.true(seconds[0]?.key);
  const changed = videoTrack({ width: 320 });
  output.setTracks([changed, AUDIO, second]);
  t.is(sink.told[0], changed);
});

test('a sink that is slow goes on at a later key frame and loses what was before it', async (t) => {
  const { sources, by, stop, live } = open(t);
  const output = live();
  const sink = new Kept();
  const source = await sources.open(URL, by, sink, stop.signal);
  sink.takes = false;
  write(output, media(0, 20));
  t.deepEqual(sink.frames, [0]);
  sink.takes = true;
  source?.resume();
  const next = sink.frames[1] as number;
  t.is(next % 30, 0, 'a key frame');
  t.true(next > 400, 'a late one');
  t.true((source?.dropped ?? 0) > 400);
});

test('a channel does not read itself', async (t) => {
  const { sources, by, stop } = open(t);
  const read = (stream: string) => sources.open({ ...URL, stream }, by, new Kept(), stop.signal);
  const of = { instanceOf: ChannelError, message: /is made of the channel that should read it/ };
  await t.throwsAsync(read('channel'), of);
  const elsewhere = sources.open({ ...URL, app: 'other', stream: 'channel' }, by, new Kept(), stop.signal);
  stop.abort();
  t.is(await elsewhere, undefined, 'another application has streams of its own');
});

test('a stream that turns out to be made of the channel is not read', async (t) => {
  const { sources, by, stop, application } = open(t);
  const input = application.publish(
    'channel',
    { type: 'Multiplex', kind: 'multiplex' },
    { replace: false, maxConnections: 0 },
  );
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'cam');
  output.setTracks([VIDEO]);
  application.announce(output);
  await t.throwsAsync(sources.open(URL, by, new Kept(), stop.signal), { instanceOf: ChannelError });
  t.false(output.watched);
});

test('a stream that is made of the channel through others is not read, also where that came up while it was waited for', async (t) => {
  const loop: { chain?: readonly string[] } = {};
  const { sources, by, stop, live } = open(t, undefined, { chain: async () => loop.chain });
  const read = () => sources.open(URL, by, new Kept(), stop.signal);
  const waiting = read();
  await setImmediate();
  loop.chain = ['default/app/channel', 'default/app/cam', 'default/app/channel'];
  const output = live();
  const text =
    'is made of the channel that should read it: default/app/channel -> default/app/cam -> default/app/channel';
  for (const opened of [waiting, read()]) {
    const { message } = await t.throwsAsync(opened, { instanceOf: ChannelError });
    t.is(message, `stream://default/app/cam ${text}`);
  }
  t.false(output.watched);
  delete loop.chain;
  t.is((await read())?.output, output);
});

test('loops are looked for once where the stream is there', async (t) => {
  let looked = 0;
  const chain = async (): Promise<undefined> => void looked++;
  const { sources, by, stop, live } = open(t, undefined, { chain });
  const output = live();
  t.is((await sources.open(URL, by, new Kept(), stop.signal))?.output, output);
  t.is(looked, 1);
});

test('a stream that ends while loops are looked for is waited for again', async (t) => {
  let looked = 0;
  const answer = Promise.withResolvers<undefined>();
  const chain = async (): Promise<undefined> => (++looked === 2 ? await answer.promise : undefined);
  const { sources, by, stop, live } = open(t, undefined, { chain });
  const opened = sources.open(URL, by, new Kept(), stop.signal);
  await setImmediate();
  const first = live();
  await until('it is looked for', () => looked === 2);
  first.input.close('the publisher left');
  answer.resolve(undefined);
  await until('it is looked for again', () => looked === 3);
  const second = live();
  t.is((await opened)?.output, second);
});
