import test from 'ava';
import { toDescription } from '../../../../src/protocols/ovt/description.ts';
import { OvtError } from '../../../../src/protocols/ovt/error.ts';
import { FrameWriter } from '../../../../src/protocols/ovt/media.ts';
import { readMessage, toResponse, writeMessage } from '../../../../src/protocols/ovt/message.ts';
import { PAYLOAD } from '../../../../src/protocols/ovt/packet.ts';
import { parseOvtUrl } from '../../../../src/protocols/ovt/url.ts';
import { seeded } from '../../codecs/vectors.ts';
import { DESCRIPTION } from './description.ts';
import { receive } from './support.ts';

const ROUNDS = 2000;

/** Whatever is neither an answer nor an OvtError is thrown. @returns whether it was an answer */
function feed(wire: Buffer, piece: number): boolean {
  try {
    const { frames, messages } = receive(wire, piece);
    const bytes = frames.reduce((sum, { data }) => sum + data.length, 0);
    if (bytes > wire.length) throw new Error(`${bytes} bytes out of ${wire.length}`);
    for (const text of messages) toDescription(toResponse(readMessage(Buffer.from(text))).contents);
    return true;
  } catch (error) {
    if (!(error instanceof OvtError)) throw new Error(`for ${wire.toString('hex')}`, { cause: error });
    return false;
  }
}

function conversation(): Buffer {
  const writer = new FrameWriter(3);
  const pieces = [
    writeMessage(PAYLOAD.response, { id: 1, application: 'describe', code: 200, contents: DESCRIPTION }, 1),
  ];
  for (let i = 0; i < 6; i++) {
    const data = Buffer.alloc(i * 9000, i);
    const info = {
      track: i % 2,
      pts: i,
      dts: i,
      duration: 1,
      mediaType: i % 2,
      key: i === 0,
      bitstream: 1,
      packetType: 1,
    };
    writer.write(info, [data], data.length, (piece) => pieces.push(piece));
  }
  return Buffer.concat(pieces);
}

test('spoilt bytes are packets or an OvtError', (t) => {
  const random = seeded(20_260_601);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const wire = conversation();
  const heads = [
    0,
    ...Array.from({ length: wire.length - 18 }, (_, i) => i).filter(
      (i) => wire[i + 1] === PAYLOAD.media && (wire[i] as number) >> 6 === 1,
    ),
  ];
  const outcomes = new Set<boolean>();
  for (let round = 0; round < ROUNDS / 10; round++) {
    const spoilt = Buffer.from(wire);
    for (let changes = 1 + upTo(4); changes > 0; changes--) {
      const near = (heads[upTo(heads.length)] as number) + upTo(54);
      spoilt[round % 2 === 0 ? upTo(spoilt.length) : Math.min(near, spoilt.length - 1)] = upTo(256);
    }
    const cut = upTo(spoilt.length);
    outcomes.add(feed(spoilt, 1 + upTo(spoilt.length)));
    feed(Buffer.concat([spoilt.subarray(0, cut), spoilt.subarray(cut + upTo(40))]), 4096);
    feed(Buffer.concat([spoilt.subarray(0, cut), spoilt.subarray(Math.max(0, cut - upTo(40)))]), 4096);
  }
  t.is(outcomes.size, 2, 'some are read, some refused');
});

test('noise is packets or an OvtError', (t) => {
  const random = seeded(11);
  const upTo = (limit: number) => Math.floor(random() * limit);
  const outcomes = new Set<boolean>();
  for (let round = 0; round < ROUNDS; round++) {
    const noise = Buffer.from(Array.from({ length: upTo(300) }, () => upTo(256)));
    if (round % 2 === 0 && noise.length > 17) {
      noise[0] = 0x40 | upTo(64);
      noise[1] = [10, 20, 30][upTo(3)] as number;
      noise.writeUInt16BE(upTo(64), 16);
    }
    outcomes.add(feed(noise, 1 + upTo(100)));
  }
  t.is(outcomes.size, 2, 'some are read, some refused');
});

test('a description with any value in any place is read or refused', (t) => {
  const random = seeded(12);
  const values = [null, -1, 0.5, 2 ** 53, '', 'x'.repeat(300), [], {}, true, [[]], 1e300];
  const spoil = (node: unknown): unknown => {
    if (random() < 0.06) return values[Math.floor(random() * values.length)];
    if (Array.isArray(node)) return node.map(spoil);
    if (typeof node !== 'object' || node === null) return node;
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, spoil(value)]));
  };
  let refused = 0;
  for (let round = 0; round < ROUNDS; round++) {
    try {
      toDescription(spoil(DESCRIPTION));
    } catch (error) {
      if (!(error instanceof OvtError)) throw error;
      refused++;
    }
  }
  t.true(refused > 0 && refused < ROUNDS);
});

test('any text is an OVT URL or none', (t) => {
  const random = seeded(13);
  const parts = [
    'ovt:',
    '//',
    '/',
    'host',
    ':9000',
    '[::1]',
    'app',
    '%41',
    '%',
    '?a=b',
    '#',
    ' ',
    '..',
    '\u0000',
    'ü',
    '\\',
    '@',
  ];
  const outcomes = new Set<boolean>();
  for (let round = 0; round < ROUNDS; round++) {
    const text = Array.from(
      { length: Math.floor(random() * 9) },
      () => parts[Math.floor(random() * parts.length)],
    ).join('');
    const url = parseOvtUrl(`ovt://${text}`);
    if (url !== undefined && (url.host === '' || url.app === '' || url.stream === '')) t.fail(text);
    outcomes.add(url !== undefined);
  }
  t.is(outcomes.size, 2, 'some are, some are not');
});
