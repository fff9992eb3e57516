import test from 'ava';
import { RtspError } from '../../../../src/protocols/rtsp/error.ts';
import { RtspReader } from '../../../../src/protocols/rtsp/reader.ts';
import { costOf } from '../../../support/time/cost.ts';
import { seeded } from '../../codecs/vectors.ts';

const READS = 9000;
/** Far above what a busy machine makes of equal costs, and far below what reading all again at each byte costs. */
const MOST = 50;

const LIMITS = { headBytes: 1000, bodyBytes: 1000, garbageBytes: 2000 };
const RESPONSE = 'RTSP/1.0 200 OK\r\nCSeq: 3\r\nX-Y: a\r\nx-y: b\r\nContent-Length: 5\r\n\r\nhello';
const REQUEST = 'OPTIONS rtsp://cam/live RTSP/1.0\r\nCSeq: 9\r\n\r\n';

function media(channel: number, fill: number, size: number): Buffer {
  return Buffer.concat([
    Buffer.of(0x24, channel, size >> 8, size & 255, ...(size > 0 ? [0x80] : [])),
    Buffer.alloc(Math.max(0, size - 1), fill),
  ]);
}

function open() {
  const out: string[] = [];
  const reader = new RtspReader(LIMITS, {
    response: ({ status, reason, headers, body }) =>
      out.push(`${status} ${reason} ${headers.get('cseq')?.join()} ${headers.get('x-y')?.join()} ${body.toString()}`),
    request: ({ method, uri, headers }) => out.push(`${method} ${uri} ${headers.get('cseq')?.join()}`),
    media: (channel, data) => out.push(`media ${channel} ${data.length} ${data.at(-1)}`),
    garbage: (bytes) => out.push(`garbage ${bytes}`),
  });
  reader.expect(0);
  reader.expect(1);
  return { reader, out, push: (bytes: Buffer, now = 0): void => reader.push(bytes, now) };
}

test('messages and packets, however the bytes come', (t) => {
  const wire = Buffer.concat([
    Buffer.from(RESPONSE),
    media(0, 7, 300),
    media(1, 8, 0),
    Buffer.from(`\r\n\r\n${REQUEST}`),
    media(0, 9, 65_535),
    Buffer.from(RESPONSE),
    media(4, 1, 5),
  ]);
  const expected = [
    '200 OK 3 a,b hello',
    'media 0 300 7',
    'media 1 0 undefined',
    'OPTIONS rtsp://cam/live 9',
    'media 0 65535 9',
    '200 OK 3 a,b hello',
    'media 4 5 1',
  ];
  for (const size of [1, 2, 3, 7, 100, 1000, 1e6]) {
    const { push, out } = open();
    for (let at = 0; at < wire.length; at += size) push(Buffer.from(wire.subarray(at, at + size)));
    t.deepEqual(out, expected, `${size}`);
  }
});

test('lines without carriage returns, folded fields, lines that are no fields', (t) => {
  const { push, out } = open();
  push(
    Buffer.from('RTSP/1.0 404 Not Found \nCSeq : 4\nthis is no field\nX-Y: a\n\tb\n\nRTSP/1.0 200\r\nCSeq:5\r\n\r\n'),
  );
  t.deepEqual(out, ['404 Not Found 4 a b ', '200  5 undefined ']);
});

test('bytes between RTSP messages are skipped, up to a packet of an expected channel, or an answer', (t) => {
  const { push, out } = open();
  push(
    Buffer.concat([
      media(0, 1, 20),
      Buffer.from([0, 1, 2, 0x24, 9, 9, 9]),
      media(1, 2, 10),
      Buffer.from('\u0001junk'),
      Buffer.from(RESPONSE),
    ]),
  );
  t.deepEqual(
    out.filter((line) => !line.startsWith('garbage')),
    ['media 0 20 1', 'media 1 10 2', '200 OK 3 a,b hello'],
  );
  const skipped = out
    .filter((line) => line.startsWith('garbage'))
    .reduce((sum, line) => sum + Number(line.slice(8)), 0);
  t.is(skipped, 12);
});

test('too much garbage, and messages without end, end an RTSP reader', (t) => {
  for (const bytes of [
    Buffer.alloc(5000, 1),
    Buffer.from(`RTSP/1.0 200 OK\r\n${'x: y\r\n'.repeat(500)}`),
    Buffer.from('RTSP/1.0 200 OK\r\nContent-Length: 1001\r\n\r\n'),
    Buffer.from('RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n'),
    Buffer.from('RTSP/1.0 abc\r\n\r\n'),
    Buffer.from('HTTP/1.1 200 OK\r\n\r\n'.repeat(200)),
  ])
    t.throws(() => open().push(bytes), { instanceOf: RtspError }, bytes.toString('latin1', 0, 50));
});

test('garbage is limited by time, whatever comes between it', (t) => {
  const noise = Buffer.concat([Buffer.alloc(900, 1), media(0, 1, 5)]);
  const slow = open();
  for (let seconds = 0; seconds < 100; seconds += 10) slow.push(noise, seconds * 1000);
  t.is(slow.out.filter((line) => line.startsWith('media')).length, 10);
  const fast = open();
  t.throws(
    () => {
      for (let i = 0; i < 3; i++) fast.push(noise, 10 * i);
    },
    { instanceOf: RtspError },
  );
});

test('bytes cost the same wherever they are: in a long header, a long body, and where nothing begins', (t) => {
  const limits = { headBytes: 20_000, bodyBytes: 250_000, garbageBytes: 1e9 };
  const sink = { response: () => {}, request: () => {}, media: () => {}, garbage: () => {} };
  const drip = (begin: string, one: string, reads: number) => () => {
    const reader = new RtspReader(limits, sink);
    reader.push(Buffer.from(begin), 0);
    for (let i = 0; i < reads; i++) reader.push(Buffer.from(one), 0);
  };
  const empty = costOf(drip('', '\n', READS));
  // a head is kept in one piece
  const pieces = costOf(() => {
    let kept = Buffer.alloc(0);
    for (let i = 0; i < READS; i++) kept = Buffer.concat([kept, Buffer.from('a\n')]);
  });
  const head = costOf(drip('RTSP/1.0 200 OK\r\n', 'a\n', READS));
  const longHead = `RTSP/1.0 200 OK\r\n${'a: b\r\n'.repeat(2000)}Content-Length: 250000\r\n\r\n`;
  const body = costOf(drip(`${longHead}${' '.repeat(230_000)}`, ' ', READS));
  const filled = (fill: number) => () => {
    const reader = new RtspReader(limits, sink);
    const chunk = Buffer.alloc(65_536, fill);
    chunk[0] = 1;
    for (let i = 0; i < 10; i++) reader.push(chunk, 0);
  };
  const nothing = costOf(filled(1));
  const dollars = costOf(filled(0x24));
  t.true(head < MOST * (pieces + empty), `a header: ${head} beside ${pieces}`);
  t.true(body < MOST * empty, `a body: ${body} beside ${empty}`);
  t.true(dollars < MOST * nothing, `packets of no channel: ${dollars} beside ${nothing}`);
});

test('a closed RTSP reader reports nothing more, even in the middle of a read', (t) => {
  const out: number[] = [];
  const reader = new RtspReader(LIMITS, {
    response: () => {},
    request: () => {},
    garbage: () => {},
    media: (channel) => {
      out.push(channel);
      reader.close();
    },
  });
  reader.push(Buffer.concat([media(0, 1, 5), media(1, 1, 5)]), 0);
  t.deepEqual(out, [0]);
});

test('random bytes, cut anywhere, are messages, packets, garbage, or an RtspError', (t) => {
  const random = seeded(21);
  const pieces = [
    Buffer.from(RESPONSE),
    Buffer.from(REQUEST),
    media(0, 1, 50),
    media(1, 2, 700),
    Buffer.from('RTSP/1.'),
    Buffer.of(0x24),
    Buffer.from('\n\n'),
  ];
  const ends = { gone: 0, refused: 0 };
  const told = new Set<string>();
  for (let run = 0; run < 300; run++) {
    const { push, out } = open();
    try {
      for (let i = 0; i < 60; i++) {
        const piece = Buffer.from(pieces[Math.floor(random() * pieces.length)] as Buffer);
        if (random() < 0.3) piece[Math.floor(random() * piece.length)] = Math.floor(random() * 256);
        push(piece.subarray(0, random() < 0.2 ? Math.floor(random() * piece.length) : piece.length));
      }
      ends.gone++;
    } catch (error) {
      t.true(error instanceof RtspError, String(error));
      ends.refused++;
    }
    for (const line of out) told.add(line.split(' ', 1)[0] ?? '');
  }
  t.true(ends.gone > 0 && ends.refused > 0, JSON.stringify(ends));
  for (const kind of ['200', 'OPTIONS', 'media', 'garbage']) t.true(told.has(kind), kind);
});
