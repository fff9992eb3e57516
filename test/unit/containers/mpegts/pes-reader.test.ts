import test from 'ava';
import { readPesHeader, type PesHeader } from '../../../../src/containers/mpegts/pes-header.ts';
import { PesReader } from '../../../../src/containers/mpegts/pes-reader.ts';
import { pes } from '../../../support/mpegts/ts-build.ts';

function setUp(kind: 'video' | 'audio' = 'video') {
  const found: { header: PesHeader; payload: Buffer }[] = [];
  const damaged: string[] = [];
  const reader = new PesReader(kind, {
    pes: (header, payload) => found.push({ header, payload: Buffer.from(payload) }),
    damaged: (reason) => damaged.push(reason),
  });
  const packet = (data: Buffer, starts: boolean, filled = false) =>
    reader.payload(data, 0, data.length, starts, filled);
  /** In pieces, of which the last is filled. */
  const send = (data: Buffer, { each = 184, filled = true } = {}) => {
    for (let at = 0; at < data.length; at += each)
      packet(data.subarray(at, at + each), at === 0, filled && at + each >= data.length);
  };
  return { reader, found, damaged, packet, send };
}

const body = (bytes: number, value = 1) => Buffer.alloc(bytes, value);

test('headers that ffmpeg writes, both times of 33 bits', (t) => {
  const head = Buffer.from('000001e0000080c00a31000910a1110007d861', 'hex');
  t.deepEqual(readPesHeader(head), {
    streamId: 0xe0,
    pts: 133_200,
    dts: 126_000,
    scrambled: false,
    announcedBytes: 0,
    length: 19,
  });
  const last = 2 ** 33 - 1;
  t.like(readPesHeader(pes(body(1), { pts: last, dts: 2 ** 32 + 5 })), { pts: last, dts: 2 ** 32 + 5 });
  t.like(readPesHeader(pes(body(1), { pts: 7 })), { pts: 7, dts: 7 });
  t.like(readPesHeader(pes(body(1))), { pts: undefined, dts: undefined, length: 9 });
});

test('a packet of known length is given out with its last byte', (t) => {
  const { found, packet } = setUp();
  const whole = pes(body(400), { pts: 90_000 });
  packet(whole.subarray(0, 184), true);
  packet(whole.subarray(184, 368), false);
  t.is(found.length, 0);
  packet(whole.subarray(368), false, true);
  t.is(found.length, 1);
  t.deepEqual(found[0]?.payload, body(400));
  t.is(found[0]?.header.pts, 90_000);
});

test('a packet whose header comes in pieces', (t) => {
  const { found, damaged, send } = setUp();
  send(pes(body(50), { pts: 1 }), { each: 3 });
  send(pes(body(50), { pts: 2, open: true }), { each: 5 });
  send(pes(body(1), { pts: 3 }));
  t.deepEqual(
    found.map(({ header, payload }) => [header.pts, payload.length]),
    [
      [1, 50],
      [2, 50],
      [3, 1],
    ],
  );
  t.deepEqual(damaged, []);
});

test('a packet of open length ends where the next one starts, and at the end of all', (t) => {
  const { reader, found, send } = setUp();
  send(pes(body(400), { pts: 1, open: true }));
  t.is(found.length, 0);
  send(pes(body(500), { pts: 2, open: true }));
  t.is(found.length, 1);
  reader.flush();
  t.deepEqual(
    found.map(({ payload }) => payload.length),
    [400, 500],
  );
});

test('padding ends a PES packet at once, when it was seen to do so', (t) => {
  const { found, damaged, send } = setUp();
  for (let i = 0; i < 17; i++) send(pes(body(400), { pts: i, open: true }));
  t.is(found.length, 17);
  send(pes(body(100), { pts: 17, open: true }));
  t.is(found.length, 18);
  // one that fills its packets needs no filling
  send(pes(body(368 - 14), { pts: 18, open: true }), { filled: false });
  t.is(found.length, 18);
  send(pes(body(400), { pts: 19, open: true }));
  t.deepEqual(
    found.map(({ header }) => header.pts),
    Array.from({ length: 20 }, (_, i) => i),
  );
  t.deepEqual(damaged, []);
});

test('a sender that fills anywhere is waited for', (t) => {
  const { found, damaged, packet, send } = setUp();
  for (let i = 0; i < 40; i++) {
    const data = pes(body(400), { pts: i, open: true });
    packet(data.subarray(0, 100), true, true);
    packet(data.subarray(100), false, i % 2 === 0);
  }
  t.is(found.length, 39);
  t.true(found.every(({ payload }) => payload.length === 400));
  send(pes(body(400)));
  t.deepEqual(damaged, []);
});

test('a stream that begins to send PES packets of open length loses one packet, and no more', (t) => {
  const { found, damaged, packet, send } = setUp();
  for (let i = 0; i < 20; i++) send(pes(body(400), { pts: i, open: true }));
  const data = pes(body(400), { pts: 20, open: true });
  for (let i = 0; i < 3; i++) {
    packet(data.subarray(0, 100), true, true);
    packet(data.subarray(100), false, true);
  }
  t.deepEqual(damaged, ['a PES packet with padding before its end']);
  t.deepEqual(
    found.slice(20).map(({ payload }) => payload.length),
    [100 - 14, 400],
  );
});

test('a PES packet with a loss in its midst is dropped', (t) => {
  const { reader, found, packet, send } = setUp();
  const data = pes(body(400), { pts: 1 });
  packet(data.subarray(0, 184), true);
  reader.lost();
  packet(data.subarray(184), false);
  packet(body(184), false);
  send(pes(body(10), { pts: 2 }));
  t.deepEqual(
    found.map(({ header }) => header.pts),
    [2],
  );
});

test('packets that are malformed, scrambled, too long or no stream', (t) => {
  const { found, damaged, packet, send } = setUp();
  send(Buffer.concat([Buffer.of(0, 0, 2), body(50)]));
  send(pes(body(10), { scrambled: true }));
  send(Buffer.from('000001e0000420000000', 'hex'));
  send(pes(body(30), { streamId: 0xbe }));
  send(Buffer.of(0, 0, 1));
  packet(pes(body(100), { open: true }), true);
  for (let i = 0; i < 45; i++) packet(body(100_000), false);
  send(pes(body(1)));
  t.deepEqual(damaged, [
    'a PES packet without its start code',
    'a scrambled PES packet',
    'a malformed PES packet',
    'a PES packet that is cut off',
    'a PES packet of too many bytes',
  ]);
  t.is(found.length, 1);
});

test('sound is never so long', (t) => {
  const { found, damaged, send } = setUp('audio');
  send(pes(body(65_000), { pts: 1 }));
  send(pes(body(140_000), { pts: 2, open: true }));
  t.is(found.length, 1);
  t.deepEqual(damaged, ['a PES packet of too many bytes']);
});
