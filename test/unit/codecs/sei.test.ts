import test from 'ava';
import { joinNals, nalUnits, unescapeNal } from '../../../src/codecs/nal.ts';
import { takesSei, userDataSei, withNalBeforeSlices } from '../../../src/codecs/sei.ts';

const UUID = Buffer.from('464d4c475241494e434f4c4f55524201', 'hex');

test('a message, byte for byte', (t) => {
  const data = Buffer.from('0000019abcdef00168', 'hex');
  const body = `0519${UUID.toString('hex')}000003019abcdef0016880`;
  t.is(userDataSei('H264', UUID, data).toString('hex'), `06${body}`);
  t.is(userDataSei('H265', UUID, data).toString('hex'), `4e01${body}`);
});

for (const size of [0, 238, 239, 240, 494, 5000])
  test(`a message with ${size} bytes of data comes out again`, (t) => {
    for (const byte of [0, 1, 3, 0xff]) {
      const nal = userDataSei('H264', UUID, Buffer.alloc(size, byte));
      t.false(hasStartCode(nal));
      const rbsp = unescapeNal(nal);
      let at = 2;
      let told = 0;
      while (rbsp[at] === 0xff) told += rbsp[at++] as number;
      told += rbsp[at++] as number;
      t.is(told, 16 + size);
      t.deepEqual(rbsp.subarray(at), Buffer.concat([UUID, Buffer.alloc(size, byte), Buffer.of(0x80)]));
    }
  });

function hasStartCode(nal: Buffer): boolean {
  return [0, 1, 2].some((last) => nal.includes(Buffer.of(0, 0, last)));
}

test('an SEI stands before the first slice, after what is there', (t) => {
  const sei = Buffer.of(6, 1);
  const h264 = [Buffer.of(9, 0xf0), sei, Buffer.of(0x65, 1), Buffer.of(0x65, 2)];
  const nal = Buffer.of(6, 5, 9);
  const types = (data: Buffer) => [...nalUnits(data)].map(([type, value]) => [type, value]);
  t.deepEqual(types(withNalBeforeSlices('H264', joinNals(h264), nal)), [
    [9, 0xf0],
    [6, 1],
    [6, 5],
    [0x65, 1],
    [0x65, 2],
  ]);
  const h265 = [Buffer.of(0x4e, 1, 7), Buffer.of(0x26, 1, 8)];
  t.deepEqual(types(withNalBeforeSlices('H265', joinNals(h265), Buffer.of(0x4e, 2))), [
    [0x4e, 1],
    [0x4e, 2],
    [0x26, 1],
  ]);
});

test('bytes that are no access unit take an SEI without harm', (t) => {
  for (const bytes of ['', '00', '00000001', 'ffffffff65', '0000000006'])
    t.notThrows(() => withNalBeforeSlices('H264', Buffer.from(bytes, 'hex'), Buffer.of(6)));
  t.true(takesSei('H265'));
  t.false(takesSei('VP8'));
});
