import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { CongestionWatch } from '../../../src/alerts/congestion-watch.ts';
import { Registry } from '../../../src/core/registry.ts';
import { queueEntry, Queues, type QueueEntry } from '../../../src/stats/queues.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';
import { RTMP, Sink, VIDEO, vhostConfig, video } from '../core/support.ts';

const APPLICATIONS = [{ name: 'app', type: 'live' }];
const FRAME_MS = 40;
const LIMITS = { bytes: 1_000_000, seconds: 5 };

/** A live stream of 25 frames a second with a push and an SRT viewer, and the alerts that are raised. */
function open(t: ExecutionContext) {
  virtualTime(t);
  const registry = new Registry();
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications: APPLICATIONS }), true);
  const raised: string[] = [];
  const told: (readonly object[] | undefined)[] = [];
  registry.on('alert', ({ messages, name, resolved, type, queues }) => {
    t.is(type, 'INTERNAL_QUEUE');
    told.push(queues);
    raised.push(`${name} ${resolved === true ? 'resolved ' : ''}${messages.map(({ code }) => code).join()}`);
  });
  const queues = new Queues(registry);
  const settings = { isOn: true };
  const watch = new CongestionWatch(registry, queues, () => settings.isOn, 'node-1');
  t.teardown(() => {
    watch.close();
    queues.close();
  });
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'live');
  output.setTracks([VIDEO]);
  const consume = (kind: 'push' | 'srt') => {
    const sink = new Sink();
    return { sink, reader: output.read(sink, LIMITS, output.queue(kind, { seconds: LIMITS.seconds / 2 })) };
  };
  const push = consume('push');
  const viewer = consume('srt');
  let frame = 0;
  /** A key frame each second. @param each is called for every frame */
  const write = async (frames: number, each = (): void => {}): Promise<void> => {
    for (let n = 0; n < frames; n++, frame++) {
      output.write(video((frame * FRAME_MS) / 1000, frame % 25 === 0));
      each();
      await delay(FRAME_MS);
    }
  };
  const entries = (): QueueEntry[] => Array.from(queues.all(), (state) => queueEntry(state, 'node-1'));
  return { input, output, push, viewer, write, raised, told, settings, entries };
}

test.serial('queues show what passes through them', async (t) => {
  const { write, entries, push, raised } = open(t);
  await write(150);
  const waits = { avgWaitingTime: 0, p50WaitingTime: 0, p95WaitingTime: 0, p99WaitingTime: 0 };
  const quiet = { ...waits, drop: 0, node: 'node-1', peak: 0, size: 0, type: 'Packet' as const };
  t.like(entries()[0], { ...quiet, inputPerSecond: 25, outputPerSecond: 25, threshold: 63 });
  t.deepEqual(
    entries().map(({ urn }) => urn),
    ['mngq:v=#default#app:s=live:p=pub:n=push', 'mngq:v=#default#app:s=live:p=pub:n=srt'],
  );
  // it takes a batch each second
  push.sink.open = false;
  let frames = 0;
  await write(150, () => {
    if (++frames % 25 !== 0) return;
    push.sink.open = true;
    push.reader.resume();
    push.sink.open = false;
  });
  const [{ avgWaitingTime = 0, p50WaitingTime = 0, p95WaitingTime = 0, p99WaitingTime = 0, ...entry } = {}] = entries();
  t.like(entry, { inputPerSecond: 25, outputPerSecond: 25, peak: 24 });
  t.true(avgWaitingTime > 300 && avgWaitingTime < 700);
  // from 0 to 960 ms, within the fifth that a bucket is wide
  t.true(p50WaitingTime > 380 && p50WaitingTime < 600, `${p50WaitingTime}`);
  t.true(p95WaitingTime > 750 && p95WaitingTime < 1150, `${p95WaitingTime}`);
  t.true(p99WaitingTime >= p95WaitingTime);
  t.deepEqual(raised, []);
});

test.serial(
  'a destination that takes nothing is congested, once, and recovers when it has been well for a while',
  async (t) => {
    const { write, raised, told, push } = open(t);
    await write(50);
    push.sink.open = false;
    await write(500);
    t.deepEqual(raised, ['live INTERNAL_QUEUE_CONGESTION']);
    t.like(told[0]?.[0], { urn: 'mngq:v=#default#app:s=live:p=pub:n=push', threshold: 63 });
    t.is(told[0]?.length, 1);
    push.sink.open = true;
    push.reader.resume();
    await write(250);
    t.is(raised.length, 1);
    await write(750);
    t.deepEqual(raised.slice(1), ['live resolved OK']);
    t.is(told[1], undefined);
  },
);

test.serial('a push that takes too little drops again and again, which is one congestion', async (t) => {
  const { write, raised, push } = open(t);
  await write(50);
  let frames = 0;
  push.sink.open = false;
  await write(3000, () => {
    if (++frames % 2 === 0) push.reader.resume();
  });
  t.deepEqual(raised, ['live INTERNAL_QUEUE_CONGESTION']);
});

test.serial('an alert follows for another queue of the stream, and a recovery at the end of the stream', async (t) => {
  const { write, raised, told, push, viewer, input } = open(t);
  await write(50);
  push.sink.open = false;
  await write(250);
  viewer.sink.open = false;
  await write(250);
  t.deepEqual(raised, ['live INTERNAL_QUEUE_CONGESTION', 'live INTERNAL_QUEUE_CONGESTION']);
  t.is(told[1]?.length, 2);
  input.close('the publisher left');
  await delay(10_000);
  t.deepEqual(raised.slice(2), ['live resolved OK']);
});

test.serial('no congestion is raised without the rule, and a raised one is over', async (t) => {
  const { write, raised, push, settings } = open(t);
  settings.isOn = false;
  await write(50);
  push.sink.open = false;
  await write(250);
  t.deepEqual(raised, []);
  settings.isOn = true;
  await write(250);
  t.deepEqual(raised, ['live INTERNAL_QUEUE_CONGESTION']);
  settings.isOn = false;
  await write(100);
  t.deepEqual(raised.slice(1), ['live resolved OK']);
});
