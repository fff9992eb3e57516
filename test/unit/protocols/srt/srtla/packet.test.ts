import test from 'ava';
import {
  isFeedback,
  readPacket,
  writeAck,
  writeId,
  writeShort,
} from '../../../../../src/protocols/srt/srtla/packet.ts';
import { seeded } from '../../../codecs/vectors.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const ID = Buffer.from(Array.from({ length: 256 }, (_, i) => i));

test('registrations have an id of 256 bytes, whatever follows it', (t) => {
  t.deepEqual(readPacket(Buffer.concat([hex('9200'), ID])), { kind: 'group', id: ID });
  t.deepEqual(readPacket(Buffer.concat([hex('9201'), ID, hex('0000')])), { kind: 'link', id: ID });
  t.is(readPacket(Buffer.concat([hex('9201'), ID.subarray(1)])), undefined);
});

test('packets of SRT are told from those of SRTLA', (t) => {
  t.deepEqual(readPacket(hex('9000')), { kind: 'keepAlive' });
  t.deepEqual(readPacket(hex('9000 c01f 0001 0000')), { kind: 'keepAlive' });
  t.deepEqual(readPacket(hex('01020304 c0000001 00000000 00000000')), { kind: 'data', sequence: 0x0102_0304 });
  for (const type of ['8000', '8002', '8006', 'ffff']) {
    t.deepEqual(readPacket(hex(`${type}0000 00000000 00000000 00000000`)), { kind: 'control' });
  }
  // what only a receiver sends, types of nobody, and headers that are cut short
  for (const type of ['9100', '9202', '9210', '9211', 'a000'])
    t.is(readPacket(hex(`${type}0000 00000000 00000000 00000000`)), undefined);
  t.is(readPacket(hex('01020304 c0000001 00000000 000000')), undefined);
  t.is(readPacket(Buffer.alloc(0)), undefined);
  t.is(readPacket(Buffer.alloc(1501)), undefined);
});

test('answers are written as senders read them', (t) => {
  t.deepEqual(writeShort(0x9202), hex('9202'));
  t.deepEqual(writeId(ID), Buffer.concat([hex('9201'), ID]));
  t.deepEqual(
    writeAck([1, 2, 3, 4, 5, 6, 7, 8, 9, 0x7fff_ffff]),
    hex('91000000 00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008 00000009 7fffffff'),
  );
});

test('acknowledgements and loss reports are feedback', (t) => {
  t.true(isFeedback(hex('8002')));
  t.true(isFeedback(hex('8003')));
  for (const type of ['8000', '8005', '0002', '80', '']) t.false(isFeedback(hex(type)));
});

test('random bytes of any length throw nothing', (t) => {
  const chance = seeded(7);
  for (let i = 0; i < 5000; i++) {
    const data = Buffer.from(Array.from({ length: Math.floor(chance() * 300) }, () => Math.floor(chance() * 256)));
    if (data.length > 1 && chance() < 0.5) data.writeUInt16BE(0x9000 | Math.floor(chance() * 0x300));
    t.notThrows(() => readPacket(data));
  }
});
