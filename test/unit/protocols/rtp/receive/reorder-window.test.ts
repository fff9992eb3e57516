import test from 'ava';
import type { RtpPacket } from '../../../../../src/protocols/rtp/receive/packet.ts';
import { ReorderWindow } from '../../../../../src/protocols/rtp/receive/reorder-window.ts';
import { seeded } from '../../../codecs/vectors.ts';

function packet(sequence: number, ssrc = 1): RtpPacket {
  return { payloadType: 96, marker: false, sequence: sequence & 0xffff, timestamp: 0, ssrc, payload: Buffer.alloc(1) };
}

/** A window, and what comes out of it: sequence numbers, `-n` for n that are lost, `restart`. */
function open(waitMs = 50) {
  const out: (number | string)[] = [];
  const window = new ReorderWindow(waitMs, {
    packet: ({ sequence }) => out.push(sequence),
    lost: (count) => out.push(`-${count}`),
    restarted: () => out.push('restart'),
  });
  const push = (now: number, ...sequences: number[]) => {
    for (const sequence of sequences) window.push(packet(sequence), now);
  };
  const taken = () => out.splice(0);
  return { window, push, taken };
}

test('packets in order pass at once, through the wrap', (t) => {
  const { window, push, taken } = open();
  push(0, 65_534, 65_535, 0, 1);
  t.deepEqual(taken(), [65_534, 65_535, 0, 1]);
  t.is(window.deadline, undefined);
});

test('packets that change places are put in order, twins and late ones are left out', (t) => {
  const { window, push, taken } = open();
  push(0, 65_533, 65_535, 65_535, 1, 65_534, 65_534, 0, 65_533);
  t.deepEqual(taken(), [65_533, 65_534, 65_535, 0, 1]);
  t.is(window.dropped, 3);
});

test('a gap that is not filled in time is reported as lost', (t) => {
  const { window, push, taken } = open(50);
  push(0, 10);
  push(100, 13);
  push(120, 14, 16);
  t.is(window.deadline, 150);
  window.tick(149);
  t.deepEqual(taken(), [10]);
  window.tick(150);
  t.deepEqual(taken(), ['-2', 13, 14]);
  t.is(window.deadline, 170);
  push(160, 12);
  window.tick(170);
  t.deepEqual(taken(), ['-1', 16]);
  t.is(window.dropped, 1);
});

test('an RTP gap is lost at once where nothing is waited for', (t) => {
  const { window, push, taken } = open(0);
  push(0, 5, 8, 9);
  t.deepEqual(taken(), [5, '-2', 8, 9]);
  t.is(window.deadline, undefined);
});

test('a limited number of packets waits for a gap', (t) => {
  const { window, push, taken } = open(1e9);
  push(0, 0);
  push(0, ...Array.from({ length: 600 }, (_, i) => i + 2));
  const out = taken();
  t.deepEqual(out.slice(0, 3), [0, '-1', 2]);
  t.is(out.length, 602);
  t.is(window.deadline, undefined);
});

test('a gap of more than fits is lost, up to where the next fits', (t) => {
  const { window, push, taken } = open();
  push(0, 0, 2000);
  t.deepEqual(taken(), [0, '-1488']);
  window.flush();
  t.deepEqual(taken(), ['-511', 2000]);
});

test('one stray RTP packet changes nothing; two that follow each other begin a new count', (t) => {
  const { window, push, taken } = open();
  push(0, 100, 30_000, 101, 50_000, 102);
  t.deepEqual(taken(), [100, 101, 102]);
  push(0, 104, 30_000, 30_001, 30_002);
  t.deepEqual(taken(), ['-1', 104, 'restart', 30_000, 30_001, 30_002]);
  t.is(window.deadline, undefined);
});

test('a new RTP source is followed from its second packet on, with what waited handed over', (t) => {
  const { window, push, taken } = open();
  push(0, 7, 9);
  window.push(packet(500, 2), 1);
  window.push(packet(10, 1), 1);
  window.push(packet(501, 2), 1);
  t.deepEqual(taken(), [7]);
  window.push(packet(502, 2), 1);
  t.deepEqual(taken(), ['-1', 9, 10, 'restart', 501, 502]);
});

test('sequence numbers go up in any order of packets, and nothing waits for longer than it may', (t) => {
  const random = seeded(7);
  for (let run = 0; run < 50; run++) {
    let last = -1;
    let told = 0;
    const window = new ReorderWindow(20, {
      packet: ({ sequence }) => {
        const step = ((sequence - last) << 16) >> 16;
        t.true(last < 0 || step === told + 1, `${last} +${told} ${sequence}`);
        last = sequence;
        told = 0;
      },
      lost: (count) => (told += count),
      restarted: () => (last = -1),
    });
    let head = Math.floor(random() * 65_536);
    for (let now = 0; now < 3000; now++) {
      head += random() < 0.05 ? Math.floor(random() * 700) : 1;
      const sequence = head - (random() < 0.3 ? Math.floor(random() * 20) : 0);
      window.push(packet(random() < 0.01 ? Math.floor(random() * 65_536) : sequence, random() < 0.01 ? 2 : 1), now);
      window.tick(now);
      t.true((window.deadline ?? now + 1) > now);
    }
  }
});

test('numbers of packets of no use are no gaps, whenever those come', (t) => {
  for (const waitMs of [0, 50]) {
    const { window, push, taken } = open(waitMs);
    const other = (sequence: number, ssrc = 1) => window.other(packet(sequence, ssrc));
    push(0, 65_533);
    t.true(other(65_534));
    push(0, 65_535);
    t.true(other(0));
    t.true(other(1));
    push(0, 2, 3);
    t.deepEqual(taken(), [65_533, 65_535, 2, 3]);
    // of several that are missing some
    other(5);
    push(0, 7);
    window.tick(100);
    t.deepEqual(taken(), ['-2', 7]);
  }
});

test('a number of no use that comes late fills the gap that held up the others', (t) => {
  const { window, push, taken } = open(50);
  push(0, 1, 3, 6);
  t.deepEqual(taken(), [1]);
  window.other(packet(2));
  t.deepEqual(taken(), [3]);
  window.other(packet(5));
  t.deepEqual(taken(), []);
  push(0, 4);
  t.deepEqual(taken(), [4, 6]);
  t.is(window.deadline, undefined);
});

test('packets of no use that count by themselves are no matter', (t) => {
  for (const waitMs of [0, 50]) {
    const { window, push, taken } = open(waitMs);
    t.false(window.other(packet(1)));
    push(0, 100);
    t.false(window.other(packet(101, 2)));
    t.false(window.other(packet(99)));
    t.false(window.other(packet(30_000)));
    // the numbers that come next, and those
    for (let sequence = 101; sequence < 2000; sequence++) {
      t.true(window.other(packet(sequence + (sequence % 3))));
      push(0, sequence);
    }
    t.deepEqual(
      taken(),
      Array.from({ length: 1900 }, (_, i) => 100 + i),
    );
    t.is(window.dropped, 0);
    // what was noted is forgotten once it is past
    push(0, 2500);
    window.tick(100);
    const lost = taken().filter((one) => typeof one === 'string');
    t.true(lost.length === 1 && Number(lost[0]) <= -498, String(lost));
  }
});
