import test from 'ava';
import { DatagramOrder } from '../../../../src/providers/mpegts-udp/datagram-order.ts';
import { tsPacket } from '../../../support/mpegts/ts-build.ts';
import { seeded } from '../../codecs/vectors.ts';

/** Seven packets of each datagram, of two PIDs and of none. */
function datagrams(count: number): Buffer[] {
  const counters = [3, 9];
  return Array.from({ length: count }, (_, n) =>
    Buffer.concat(
      Array.from({ length: 7 }, (_, i) => {
        const which = (n + i) % 3;
        if (which === 2) return tsPacket({ pid: 0x1fff }, Buffer.alloc(184, n));
        return tsPacket({ pid: 256 + which, counter: counters[which]!++ }, Buffer.alloc(184, n));
      }),
    ),
  );
}

function setUp(waitMs = 50) {
  const out: Buffer[] = [];
  return { out, order: new DatagramOrder(waitMs, (data) => out.push(data)) };
}

test('datagrams that change places come out in order', (t) => {
  const random = seeded(11);
  const sent = datagrams(300);
  // two may overtake one
  const shuffled = sent
    .map((data, i) => ({ data, at: i === 0 ? 0 : i + random() * 2.9 }))
    .sort((a, b) => a.at - b.at)
    .map(({ data }) => data);
  t.notDeepEqual(shuffled, sent);
  const { out, order } = setUp();
  for (const [i, data] of shuffled.entries()) order.push(data, i);
  t.deepEqual(out, sent);
  t.is(order.deadline, undefined);
});

/** Seven packets of one PID in each. */
function full(count: number): Buffer[] {
  return Array.from({ length: count }, (_, n) =>
    Buffer.concat(
      Array.from({ length: 7 }, (_, i) => tsPacket({ pid: 256, counter: 7 * n + i }, Buffer.alloc(184, n))),
    ),
  );
}

test('full datagrams that change places', (t) => {
  const sent = full(41);
  const { out, order } = setUp();
  order.push(sent[0]!, 0);
  for (let i = 1; i < sent.length; i += 2) for (const next of [i + 1, i]) order.push(sent[next]!, i);
  t.deepEqual(out, sent);
});

test('a missing datagram is waited for, for a time and while counters are unambiguous', (t) => {
  const sent = full(60);
  const { out, order } = setUp();
  order.push(sent[0]!, 0);
  order.push(sent[2]!, 10);
  t.is(out.length, 1);
  t.is(order.deadline, 60);
  order.tick(59);
  t.is(out.length, 1);
  order.tick(60);
  t.deepEqual(out, [sent[0], sent[2]]);
  t.is(order.deadline, undefined);
  order.push(sent[4]!, 70);
  t.is(out.length, 2);
  order.push(sent[5]!, 70);
  t.deepEqual(out.slice(2), sent.slice(4, 6));
});

test('datagrams leave in order, whatever is lost', (t) => {
  const random = seeded(23);
  const sent = datagrams(3000);
  const { out, order } = setUp();
  for (const [i, data] of sent.entries()) if (random() > 0.05) order.push(data, i);
  order.tick(1e9);
  const numbers = out.map((data) => sent.indexOf(data));
  t.true(numbers.length > 2000);
  t.true(numbers.every((number, i) => i === 0 || number > (numbers[i - 1] as number)));
});

test('duplicate datagrams pass, and so do those that are no transport stream', (t) => {
  const sent = datagrams(3);
  const { out, order } = setUp();
  const all = [sent[0]!, Buffer.from('noise'), sent[1]!, Buffer.alloc(0), sent[2]!];
  for (const data of all) order.push(data, 0);
  t.deepEqual(out, all);
});

test('datagrams of a stream whose packets are cut anywhere are not held up', (t) => {
  const all = Buffer.concat(datagrams(100));
  const sent: Buffer[] = Array.from({ length: Math.floor(all.length / 1472) }, (_, i) =>
    all.subarray(i * 1472, (i + 1) * 1472),
  );
  const { out, order } = setUp();
  for (const data of sent) order.push(data, 0);
  t.deepEqual(
    out.map((data) => sent.indexOf(data)),
    sent.map((_, i) => i),
  );
});
