import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { Queue } from '../../../src/core/queue.ts';
import { Reader } from '../../../src/core/reader.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';
import { seeded } from '../codecs/vectors.ts';
import { Sink, video } from './support.ts';

const LIMITS = { bytes: 1_000_000, seconds: 5 };

function open(queue: Queue) {
  const sink = new Sink();
  return { sink, reader: new Reader(sink, () => {}, LIMITS, undefined, queue) };
}

test('packets that are taken at once are counted, and do not wait', (t) => {
  const queue = new Queue('srt', { seconds: 2.5 });
  const { reader } = open(queue);
  for (let i = 0; i < 5; i++) reader.push(video(i / 10, i === 0));
  t.like(queue, { came: 5, taken: 5, size: 0, peak: 0, dropped: 0 });
});

test('readers of one kind are counted together, and one that leaves takes nothing', (t) => {
  const queue = new Queue('srt', { seconds: 2.5 });
  const [one, other] = [open(queue), open(queue)];
  for (const { sink, reader } of [one, other]) {
    sink.open = false;
    for (let i = 0; i < 4; i++) reader.push(video(i / 10, i === 0));
  }
  t.like(queue, { came: 8, taken: 2, size: 6, peak: 6 });
  one.reader.close();
  one.reader.close();
  t.like(queue, { came: 8, taken: 2, size: 3, peak: 6, dropped: 0 });
  other.sink.open = true;
  other.reader.resume();
  t.like(queue, { came: 8, taken: 5, size: 0, peak: 6 });
});

test.serial('waiting is counted by packets and milliseconds', async (t) => {
  virtualTime(t);
  const queue = new Queue('push', { seconds: 7.5 });
  const { sink, reader } = open(queue);
  sink.open = false;
  reader.push(video(0, true));
  reader.push(video(0.1, false));
  await delay(100);
  reader.push(video(0.2, false));
  await delay(50);
  t.is(queue.waited(performance.now()), 200, 'one for 150 ms, one for 50 ms');
  sink.open = true;
  reader.resume();
  await delay(1000);
  t.is(queue.waited(performance.now()), 200);
});

test('every packet of a queue was taken, dropped, or waits', (t) => {
  const random = seeded(7);
  const queue = new Queue('encoder', { seconds: 3 });
  const { sink, reader } = open(queue);
  for (let i = 0; i < 3000; i++) {
    if (random() < 0.02) sink.open = !sink.open;
    if (sink.open || random() < 0.1) reader.resume();
    if (random() < 0.01) reader.skip();
    reader.push(video(i / 10, i % 20 === 0));
    t.is(queue.taken, sink.packets.length);
    t.is(queue.dropped, reader.dropped);
    t.true(queue.size <= queue.peak);
  }
  t.true(queue.dropped > 0);
  sink.open = true;
  reader.resume();
  t.is(queue.size, 0);
});

test.serial('a slow reader does not make those beside it seem slow', async (t) => {
  virtualTime(t);
  const queue = new Queue('srt', { seconds: 2.5 });
  const [slow, quick] = [open(queue), open(queue)];
  slow.sink.open = quick.sink.open = false;
  for (const { reader } of [slow, quick]) for (let i = 0; i < 3; i++) reader.push(video(i / 10, i === 0));
  await delay(100);
  quick.sink.open = true;
  quick.reader.resume();
  const counted = (histogram: Queue['waits']) => histogram?.counts.reduce((sum, count) => sum + count, 0);
  t.is(counted(queue.waits), 2, 'the first one is taken, and says that no more can be');
  t.is(queue.waits?.sum, 200);
  await delay(900);
  t.is(queue.waiting.sum, 2000);
  slow.reader.close();
  slow.reader.resume();
  t.like(queue, { came: 6, taken: 4, size: 0 });
  t.is(counted(queue.waiting), 0);
  t.is(counted(queue.waits), 2, 'nobody took the rest');
});

test('packets that are dropped do not count as taken after a wait', (t) => {
  const queue = new Queue('srt', { seconds: 2.5 });
  const { sink, reader } = open(queue);
  sink.open = false;
  for (let i = 0; i < 100; i++) reader.push(video(i / 10, i % 20 === 0));
  t.true(queue.dropped > 0);
  t.is(queue.waits?.counts.reduce((sum, count) => sum + count, 0) ?? 0, 0);
});
