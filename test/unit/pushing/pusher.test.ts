import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Registry } from '../../../src/core/registry.ts';
import type { StreamTask } from '../../../src/tasks/kind.ts';
import { readDestination } from '../../../src/pushing/destination.ts';
import { PushError } from '../../../src/pushing/error.ts';
import { readPushProgress, readPushReport, type PushProgress } from '../../../src/pushing/progress.ts';
import { Pusher } from '../../../src/pushing/pusher.ts';
import type { OpenSink, Sink, SinkOptions } from '../../../src/pushing/sink.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

/** A connection that takes everything. */
function sink(): Sink & { sentBytes: number; closed: number; finished: number } {
  return {
    isSingle: true,
    takesBursts: true,
    sentBytes: 0,
    closed: 0,
    finished: 0,
    objection: () => undefined,
    setTracks: () => {},
    write: () => true,
    finish() {
      this.finished += 1;
    },
    close() {
      this.closed += 1;
    },
  };
}

function start(t: ExecutionContext, open: OpenSink, progress?: PushProgress) {
  virtualTime(t);
  const registry = new Registry();
  addVhost(registry);
  const end = new AbortController();
  const lines: string[] = [];
  let report: () => unknown = () => undefined;
  let kept: unknown;
  const task: Partial<StreamTask> = {
    output: goLive(registry, 'app', 'live'),
    signal: end.signal,
    progress,
    keep: (value) => (kept = value),
    show: (told) => (report = told),
  };
  const over = new Pusher({
    task: task as StreamTask,
    destination: readDestination('rtmp', 'rtmp://example.com/app', 'key'),
    choice: { trackIds: [], variantNames: [] },
    open,
    connectMs: 5000,
    sendMs: 2000,
    start: () => undefined,
    log: pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) }),
  }).run();
  t.teardown(() => {
    end.abort();
    registry.close('the test is over');
  });
  return {
    end: () => end.abort(),
    over,
    lines,
    report: () => readPushReport(report()),
    kept: () => readPushProgress(kept),
  };
}

test.serial('a destination that stays away is tried again after a second, then after two to five', async (t) => {
  const times: number[] = [];
  const { report, lines } = start(t, async () => {
    times.push(performance.now());
    throw new PushError('it is away');
  });
  await until('it was tried often', () => times.length >= 12);
  const pauses = times.slice(1).map((time, at) => time - (times[at] as number));
  t.true((pauses[0] as number) >= 1000 && (pauses[0] as number) < 1100, `${pauses[0]}`);
  for (const pause of pauses.slice(1)) t.true(pause >= 2000 && pause < 5100, `${pause}`);
  t.like(report(), { state: 'error', reason: 'it is away', sequence: 0 });
  t.is(lines.filter((line) => line.includes('"level":40')).length, 1, 'one line is enough');
});

test.serial('the next pause is short again after a connection that lasted', async (t) => {
  const times: number[] = [];
  const failing: OpenSink = async (_destination, options: SinkOptions) => {
    times.push(performance.now());
    if (times.length !== 4) throw new PushError('it is away');
    setTimeout(() => options.failed('it has gone'), 15_000);
    return sink();
  };
  start(t, failing);
  await until('it was connected and tried again', () => times.length >= 5);
  const lasted = (times[4] as number) - (times[3] as number);
  t.true(lasted >= 16_000 && lasted < 16_200, `${lasted}`);
});

test.serial('a push destination that does not answer is given up in time, and its late answer is closed', async (t) => {
  const late = sink();
  let aborted = 0;
  const { report } = start(t, async (_destination, { signal }) => {
    signal.addEventListener('abort', () => (aborted += 1));
    await delay(20_000);
    return late;
  });
  await until('it is given up', () => report()?.state === 'error');
  t.is(report()?.reason, 'not connected within 5000 ms');
  t.true(aborted > 0);
  await until('it is closed', () => late.closed > 0);
});

test.serial('a push that is stopped while it connects ends at once', async (t) => {
  const late = sink();
  const { end, over } = start(t, async () => {
    await delay(60_000);
    return late;
  });
  await delay(100);
  const since = performance.now();
  end();
  await over;
  t.true(performance.now() - since < 10);
});

test.serial('bytes sent by a push add up over connections and runs', async (t) => {
  const before: PushProgress = {
    sequence: 3,
    sentBytes: 5,
    sentTime: 7,
    totalsentBytes: 100,
    totalsentTime: 1000,
    startTime: 1,
    finishTime: 2,
  };
  const sinks: ReturnType<typeof sink>[] = [];
  let fail = (_reason: string): void => {};
  const open: OpenSink = async (_destination, { failed }) => {
    fail = failed;
    sinks.push(sink());
    return sinks.at(-1) as Sink;
  };
  const { end, over, report, kept } = start(t, open, before);
  await until('it is pushing', () => report()?.state === 'pushing');
  t.like(report(), { sequence: 4, sentBytes: 0, totalsentBytes: 100, totalsentTime: 1000 });
  (sinks[0] as { sentBytes: number }).sentBytes = 40;
  await delay(2000);
  fail('it has gone');
  await until('it is an error', () => report()?.state === 'error');
  t.like(kept(), { sequence: 4, sentBytes: 40, totalsentBytes: 140 });
  await until('it is pushing', () => report()?.state === 'pushing');
  (sinks[1] as { sentBytes: number }).sentBytes = 2;
  await delay(2000);
  end();
  await over;
  const { totalsentTime, ...counts } = kept();
  t.like(counts, { sequence: 5, sentBytes: 2, totalsentBytes: 142 });
  t.true(totalsentTime >= 5000 && totalsentTime < 5500, `${totalsentTime}`);
  t.deepEqual(
    sinks.map(({ closed, finished }) => [closed, finished]),
    [
      [1, 0],
      [0, 1],
    ],
  );
});

/** Connections by the order in which they were asked for; each is made when the test says so. */
function connections() {
  const made: { url: string; sink: ReturnType<typeof sink>; options: SinkOptions; finish: (error?: Error) => void }[] =
    [];
  const open: OpenSink = (destination, options) => {
    const { promise, resolve, reject } = Promise.withResolvers<Sink>();
    const own = sink();
    const finish = (error?: Error): void => (error === undefined ? resolve(own) : reject(error));
    made.push({ url: destination.url.href, sink: own, options, finish });
    if (made.length === 1) finish();
    return promise;
  };
  return { made, open };
}

test.serial(
  'a destination that asks for another connection gets media over the old one until the new one is made',
  async (t) => {
    const { made, open } = connections();
    const { report, end, over } = start(t, open);
    await until('it is pushing', () => report()?.state === 'pushing');
    made[0]?.options.moved('//other.example.com/app');
    made[0]?.options.moved('//other.example.com/app');
    await until('another one is asked for', () => made.length === 2);
    t.is(made[1]?.url, 'rtmp://other.example.com/app');
    await delay(1000);
    t.like(report(), { state: 'pushing', sequence: 1 });
    t.is(made[0]?.sink.finished, 0);
    made[1]?.finish();
    await until('it has moved', () => report()?.sequence === 2);
    t.is(report()?.state, 'pushing');
    t.is(made[0]?.sink.finished, 1);
    made[1]?.options.moved(undefined);
    await delay(1000);
    t.is(made.length, 2, 'not again so soon');
    await delay(10_000);
    made[1]?.options.moved(undefined);
    await until('another one is asked for', () => made.length === 3);
    t.is(made[2]?.url, 'rtmp://other.example.com/app');
    end();
    await over;
    t.deepEqual([made[1]?.sink.finished, made[1]?.sink.closed], [1, 0]);
    made[2]?.finish();
    await until('what came too late is closed', () => made[2]?.sink.closed === 1);
  },
);

test.serial('a destination may end the old connection while the new one is made', async (t) => {
  const { made, open } = connections();
  const { report, lines } = start(t, open);
  await until('it is pushing', () => report()?.state === 'pushing');
  made[0]?.options.moved(undefined);
  await until('another one is asked for', () => made.length === 2);
  made[0]?.options.failed('the server ended the stream');
  await delay(100);
  made[1]?.finish();
  await until('it has moved', () => report()?.sequence === 2);
  t.is(made.length, 2);
  t.false(lines.some((line) => line.includes('push.failed')));
});

test.serial(
  'a push stays where it is when it cannot move, and goes back where it began when it has lost its connection',
  async (t) => {
    const { made, open } = connections();
    const { report, lines } = start(t, open);
    await until('it is pushing', () => report()?.state === 'pushing');
    made[0]?.options.moved('http://other.example.com/app');
    await until('that is refused', () => lines.some((line) => line.includes('Unsupported protocol')));
    made[0]?.options.moved('/second');
    await until('another one is asked for', () => made.length === 2);
    made[1]?.finish(new PushError('it refused'));
    await delay(1000);
    t.like(report(), { state: 'pushing', sequence: 1 });
    made[0]?.options.moved('/third');
    await until('another one is asked for', () => made.length === 3);
    made[2]?.finish();
    await until('it has moved', () => report()?.sequence === 2);
    made[2]?.options.failed('it has gone');
    await until('another one is asked for', () => made.length === 4);
    t.deepEqual(
      made.map(({ url }) => new URL(url).pathname),
      ['/app', '/second', '/third', '/app'],
    );
  },
);
