import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../../src/core/packet.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { Track } from '../../../../src/core/track.ts';
import { firstSource } from '../../../../src/providers/pull/first-source.ts';
import { Opening } from '../../../../src/providers/pull/opening.ts';
import { Pull, type PullOptions } from '../../../../src/providers/pull/pull.ts';
import type { PullSource, SourceSink } from '../../../../src/providers/pull/source.ts';
import type { PullSpec } from '../../../../src/providers/pull/spec.ts';
import { UseWatch } from '../../../../src/providers/pull/use-watch.ts';
import { addVhost, AUDIO, VIDEO } from '../../../support/server/live.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const PLAYLIST = {
  name: 'of the origin',
  fileName: 'origin',
  renditions: [],
  options: { webrtcAutoAbr: true, webrtcAudioOnlyFallback: false, hlsChunklistPathDepth: -1, enableTsPackaging: false },
};
const SPEC: PullSpec = {
  urls: ['ovt://one/a/s'],
  relay: true,
  noInputFailoverMs: 3000,
  unusedMs: 0,
  retryCount: 0,
  failbackMs: 0,
  isFromStore: false,
};

/** Origins by URL: those that are up play, until they are told to end. */
class Origins {
  readonly up = new Set<string>();
  readonly opened: string[] = [];
  readonly playing = new Map<string, SourceSink>();

  readonly open = (url: string): Opening => new Opening(() => this.#open(url));

  async #open(url: string): Promise<PullSource> {
    this.opened.push(url);
    if (!this.up.has(url)) throw new Error(`${url} is down`);
    return {
      connection: undefined,
      play: async (sink) => {
        this.playing.set(url, sink);
        sink.tracks([{ ...VIDEO }, { ...AUDIO }], [PLAYLIST]);
      },
      close: () => this.playing.delete(url),
    };
  }

  end(url: string): void {
    this.up.delete(url);
    const sink = this.playing.get(url);
    this.playing.delete(url);
    sink?.end('the test ended it');
  }
}

function begin(
  t: ExecutionContext,
  spec: Partial<PullSpec>,
  options: Partial<PullOptions> = {},
  up: readonly string[] = [],
) {
  const registry = new Registry();
  addVhost(registry);
  const application = registry.vhost('default').application('app');
  const input = application.publish(
    's',
    { type: 'Ovt', kind: 'ovt' },
    { replace: false, maxConnections: 0, isPassthrough: true },
  );
  const origins = new Origins();
  for (const url of up) origins.up.add(url);
  const stop = new AbortController();
  const played: string[] = [];
  const pull = new Pull({
    application,
    input,
    spec: { ...SPEC, ...spec },
    persistent: false,
    isNew: false,
    open: origins.open,
    log: pino({ level: 'silent' }),
    signal: stop.signal,
    begin: { at: 0 },
    onPlays: (url) => void played.push(url),
    ...options,
  });
  t.teardown(() => stop.abort());
  const run = pull.run();
  run.catch(() => undefined);
  return { application, input, origins, stop, pull, run, played };
}

const plays = (origins: Origins, url: string) => until(`${url} plays`, () => origins.playing.has(url));

test('a relay is put out as the origin describes it, under its own name', async (t) => {
  const { application, input, origins, played } = begin(t, {}, {}, ['ovt://one/a/s']);
  await plays(origins, 'ovt://one/a/s');
  t.deepEqual(played, ['ovt://one/a/s']);
  const output = application.outputs.get('s');
  t.deepEqual(
    output?.tracks.map(({ codec }) => codec),
    ['H264', 'AAC'],
  );
  t.like(output?.playlist('origin'), PLAYLIST);
  const packets: Packet[] = [];
  output?.read({ packet: (packet) => void packets.push(packet) });
  const [track] = input.tracks;
  const packet = { track: track as typeof VIDEO, dts: 0, pts: 0, duration: 3000, key: true, data: Buffer.from('x') };
  origins.playing.get('ovt://one/a/s')?.packet(packet);
  t.deepEqual(packets, [{ ...packet, track: output?.tracks[0] }]);
  t.is(packets[0]?.data, packet.data, 'not a copy');
});

test('a relay shows its tracks as bypassed, and their objects change only when those of the origin do', async (t) => {
  const { application, origins } = begin(t, {}, {}, ['ovt://one/a/s']);
  await plays(origins, 'ovt://one/a/s');
  const sink = origins.playing.get('ovt://one/a/s');
  const output = application.outputs.get('s');
  const same: Track = { ...VIDEO, bypass: false };
  sink?.tracks([same], [PLAYLIST]);
  const [video] = output?.tracks ?? [];
  t.deepEqual([video?.bypass, video?.source], [true, VIDEO.id]);
  // as OVT origins describe theirs
  const described = { ...AUDIO, bypass: true };
  sink?.tracks([same, described], [PLAYLIST]);
  t.is(output?.tracks[0], video, 'nothing for decoders to start anew for');
  t.is(output?.tracks[1], described);
  const packets: Packet[] = [];
  output?.read({ packet: (packet) => void packets.push(packet) });
  const packet = { track: described, dts: 0, pts: 0, duration: 1024, key: true, data: Buffer.from('x') };
  sink?.packet(packet);
  t.is(packets[0], packet);
});

test('URLs are tried in order; when one ends the next goes on with the same stream', async (t) => {
  const urls = ['ovt://one/a/s', 'ovt://two/a/s', 'ovt://three/a/s'];
  const { input, origins, run, played, application } = begin(t, { urls }, {}, urls.slice(1));
  await plays(origins, 'ovt://two/a/s');
  t.deepEqual(origins.opened, urls.slice(0, 2));
  const output = application.outputs.get('s');
  const [before] = input.tracks;
  origins.end('ovt://two/a/s');
  await plays(origins, 'ovt://three/a/s');
  t.not(input.tracks[0], before, 'another track object: a discontinuity');
  t.is(application.outputs.get('s'), output);
  t.deepEqual(played, urls.slice(1));
  origins.end('ovt://three/a/s');
  await run;
  t.deepEqual(origins.opened, [...urls, 'ovt://one/a/s', 'ovt://two/a/s'], 'each of the others once more');
});

test('a stream that goes on begins with the URL that it came from, and has the others after it', async (t) => {
  const urls = ['ovt://one/a/s', 'ovt://two/a/s', 'ovt://three/a/s'];
  const { origins } = begin(t, { urls }, { begin: { at: 1 } }, [urls[0] as string]);
  await plays(origins, 'ovt://one/a/s');
  t.deepEqual(origins.opened, ['ovt://two/a/s', 'ovt://three/a/s', 'ovt://one/a/s']);
});

test('an origin for a new stream is searched in rounds, until no viewer waits any more', async (t) => {
  const urls = ['ovt://one/a/s', 'ovt://two/a/s'];
  const origins = new Origins();
  const stop = new AbortController();
  await t.throwsAsync(firstSource({ ...SPEC, urls, retryCount: 2 }, origins.open, stop.signal), {
    name: 'PullError',
    message: 'ovt://one/a/s: ovt://one/a/s is down; ovt://two/a/s: ovt://two/a/s is down',
  });
  t.deepEqual(origins.opened, [...urls, ...urls]);
  origins.up.add('ovt://two/a/s');
  t.is((await firstSource({ ...SPEC, urls }, origins.open, stop.signal)).at, 1);
  const late = Promise.withResolvers<PullSource>();
  let closed = false;
  const waiting = firstSource(SPEC, () => new Opening(() => late.promise), stop.signal);
  stop.abort();
  await t.throwsAsync(waiting, { name: 'PullError' });
  late.resolve({ connection: undefined, play: async () => {}, close: () => (closed = true) });
  await until('it is closed', () => closed);
  t.true(closed);
});

test('retryCount: rounds through the URLs before it is given up', async (t) => {
  const urls = ['ovt://one/a/s', 'ovt://two/a/s'];
  for (const [retryCount, tries] of [
    [0, 2],
    [1, 2],
    [3, 6],
  ] as const) {
    const { origins, run } = begin(t, { urls, retryCount });
    await run;
    t.is(origins.opened.length, tries);
  }
});

test('a stream with one URL ends with its source without retries; with them it is tried again', async (t) => {
  const one = begin(t, {}, {}, SPEC.urls);
  await plays(one.origins, 'ovt://one/a/s');
  one.origins.end('ovt://one/a/s');
  await one.run;
  t.is(one.origins.opened.length, 1);
  const two = begin(t, { retryCount: 2 }, {}, SPEC.urls);
  await plays(two.origins, 'ovt://one/a/s');
  two.origins.end('ovt://one/a/s');
  await two.run;
  t.is(two.origins.opened.length, 3);
});

test('a persistent one is tried for ever, but for its creation', async (t) => {
  const fresh = begin(t, {}, { persistent: true, isNew: true });
  await t.throwsAsync(fresh.run, { message: /is down/ });
  const { input, origins } = begin(t, {}, { persistent: true }, SPEC.urls);
  await plays(origins, 'ovt://one/a/s');
  origins.end('ovt://one/a/s');
  await until('it was tried a few times', () => origins.opened.length > 3);
  t.true(input.listed && !input.closed);
  t.is(input.tracks.length, 2);
  origins.up.add('ovt://one/a/s');
  await plays(origins, 'ovt://one/a/s');
});

test('a new one that never plays fails', async (t) => {
  const { run } = begin(t, { urls: ['ovt://one/a/s', 'ovt://two/a/s'] }, { isNew: true });
  await t.throwsAsync(run, { name: 'PullError', message: 'ovt://two/a/s is down' });
});

test('failback: the first URL is tried while another plays, and takes over when it is back', async (t) => {
  const urls = ['ovt://one/a/s', 'ovt://two/a/s'];
  const { input, origins, pull } = begin(t, { urls, failbackMs: 20 }, {}, ['ovt://two/a/s']);
  await plays(origins, 'ovt://two/a/s');
  await until('it was looked for', () => origins.opened.filter((url) => url === urls[0]).length > 2);
  t.true(origins.playing.has('ovt://two/a/s'));
  t.is(pull.url, 'ovt://two/a/s');
  origins.up.add('ovt://one/a/s');
  await plays(origins, 'ovt://one/a/s');
  t.deepEqual([...origins.playing.keys()], ['ovt://one/a/s']);
  t.is(pull.url, 'ovt://one/a/s');
  t.false(input.closed);
  const before = origins.opened.length;
  origins.end('ovt://one/a/s');
  await plays(origins, 'ovt://two/a/s');
  t.is(origins.opened[before], 'ovt://two/a/s', 'the next one, at once');
});

/** An origin that never answers, and the signals that its connections had. */
function silent() {
  const signals: AbortSignal[] = [];
  const open = (): Opening =>
    new Opening((signal) => {
      signals.push(signal);
      return new Promise<never>(() => {});
    });
  return { signals, open };
}

test('a connection that is not open yet is ended with the pull, and nothing else is', async (t) => {
  const running = silent();
  const { stop, run } = begin(t, {}, running);
  await until('it connects', () => running.signals.length === 1);
  t.false(running.signals[0]?.aborted);
  stop.abort();
  await run;
  t.true(running.signals[0]?.aborted);

  const fresh = silent();
  const viewer = new AbortController();
  const first = firstSource(SPEC, fresh.open, viewer.signal);
  viewer.abort();
  await t.throwsAsync(first, { name: 'PullError', message: 'the pull was ended' });
  t.true(fresh.signals[0]?.aborted);

  const begun = silent();
  const next = begin(t, {}, { begin: { at: 0, opening: begun.open() } });
  next.stop.abort();
  await next.run;
  t.true(begun.signals[0]?.aborted);
});

test('a connection to the first origin is ended with the pull that plays from another', async (t) => {
  const [urls, { signals, open }] = [['ovt://one/a/s', 'ovt://two/a/s'], silent()];
  const up = new Origins();
  up.up.add('ovt://two/a/s');
  const { stop, run } = begin(
    t,
    { urls, failbackMs: 1 },
    {
      open: (url) => (url === urls[0] ? open() : up.open(url)),
      begin: { at: 1 },
    },
  );
  await plays(up, 'ovt://two/a/s');
  await until('the first is asked', () => signals.length === 1);
  t.false(signals[0]?.aborted);
  stop.abort();
  await run;
  await until('that is ended', () => signals[0]?.aborted);
  t.is(up.playing.size, 0);
});

test('a source that is open has its end by close alone, and one that comes too late has it at once', async (t) => {
  let [closed, aborted] = [0, 0];
  const source: PullSource = { connection: undefined, play: async () => {}, close: () => void closed++ };
  const opened = new Opening(async (signal) => {
    signal.addEventListener('abort', () => aborted++);
    return source;
  });
  await opened.source;
  opened.close();
  t.deepEqual([closed, aborted], [1, 0]);
  const late = Promise.withResolvers<PullSource>();
  const slow = new Opening(() => late.promise);
  slow.close();
  late.resolve(source);
  await until('it is closed', () => closed > 1);
  t.deepEqual([closed, aborted], [2, 0]);
});

test('a pull ends at once when it is stopped, whatever it waits for', async (t) => {
  const hanging = begin(t, {}, silent());
  hanging.stop.abort();
  await hanging.run;
  const { origins, stop, run } = begin(t, {}, {}, SPEC.urls);
  await plays(origins, 'ovt://one/a/s');
  stop.abort();
  await run;
  t.is(origins.playing.size, 0);
});

test.serial('a stream without viewers is noticed, and one that is watched through another node is not', async (t) => {
  virtualTime(t);
  const registry = new Registry();
  addVhost(registry);
  const application = registry.vhost('default').application('app');
  const input = application.publish('s', { type: 'Ovt', kind: 'ovt' }, { replace: false, maxConnections: 0 });
  const output = application.addOutput(input, 's');
  let unused = false;
  const leave = output.addRelay();
  const watch = new UseWatch(input, 40, () => (unused = true));
  t.teardown(() => watch.close());
  await delay(1000);
  t.false(unused);
  leave();
  await until('it is noticed', () => unused);
});

test.serial('an origin without any usable track fails for the reason that its source gives', async (t) => {
  virtualTime(t);
  const mute = { connection: undefined, play: async () => {}, close: () => {} };
  for (const [trouble, expected] of [
    [undefined, /tracks in time$/],
    ['H264: no SPS', /tracks in time \(H264: no SPS\)$/],
  ] as const) {
    const { run } = begin(t, {}, { isNew: true, open: () => new Opening(async () => ({ ...mute, trouble })) });
    await t.throwsAsync(run, { name: 'PullError', message: expected });
  }
});
