import test from 'ava';
import { decodeAmf0, encodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import { amfObject, isAmfObject, type AmfValue } from '../../../../src/protocols/rtmp/amf-value.ts';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

function record(properties: Record<string, AmfValue>) {
  return Object.assign(amfObject(), properties);
}

const VECTORS: readonly (readonly [string, string, AmfValue])[] = [
  ['number', '00 3ff0000000000000', 1],
  ['boolean', '01 01', true],
  ['string', '02 0003 666f6f', 'foo'],
  ['two bytes of UTF-8', '02 0002 c3a9', 'é'],
  ['object', '03 0001 61 02 0001 62 000009', record({ a: 'b' })],
  ['empty object', '03 000009', record({})],
  ['null', '05', null],
  ['undefined', '06', undefined],
  ['array', '0a 00000002 0100 05', [false, null]],
  ['date', '0b 4270000000000000 0000', new Date(2 ** 40)],
];

for (const [name, bytes, value] of VECTORS) {
  test(`AMF0 ${name}, both ways`, (t) => {
    t.deepEqual(decodeAmf0(hex(bytes)), [value]);
    t.deepEqual(encodeAmf0(value), hex(bytes));
  });
}

const READ_ONLY: readonly (readonly [string, string, AmfValue])[] = [
  ['ECMA array with a wrong count', '08 00000063 0001 61 00 4000000000000000 000009', record({ a: 2 })],
  ['object that ends with the body', '03 0001 61 05', record({ a: null })],
  ['long string', '0c 00000002 6869', 'hi'],
  ['XML document', '0f 00000002 6869', 'hi'],
  ['typed object', '10 0001 54 0001 61 0101 000009', record({ a: true })],
  ['unsupported', '0d', undefined],
  ['__proto__ as any other name', '03 0009 5f5f70726f746f5f5f 0101 000009', record({ ['__proto__']: true })],
  ['AMF3 undefined, null, false and true', '11 00', undefined],
  ['AMF3 integer of one byte', '11 04 7f', 127],
  ['AMF3 integer of two bytes', '11 04 8100', 128],
  ['AMF3 integer of four bytes', '11 04 bfffffff', 0x0fffffff],
  ['AMF3 negative integer', '11 04 ffffffff', -1],
  ['AMF3 double', '11 05 3ff8000000000000', 1.5],
  ['AMF3 string', '11 06 07 666f6f', 'foo'],
  ['AMF3 date', '11 08 01 4270000000000000', new Date(2 ** 40)],
  ['AMF3 dense array with a repeated string', '11 09 05 01 06 03 61 06 00', ['a', 'a']],
  ['AMF3 associative array', '11 09 03 03 6b 04 01 01 04 02', record({ k: 1, 0: 2 })],
  ['AMF3 dynamic object', '11 0a 0b 01 03 61 04 05 01', record({ a: 5 })],
  ['AMF3 class with sealed and dynamic names', '11 0a 1b 03 54 03 61 04 01 03 62 03 01', record({ a: 1, b: true })],
  ['AMF3 byte array', '11 0c 05 0102', Buffer.of(1, 2)],
  ['AMF3 object that is told twice', '11 09 05 01 0a 0b 01 01 0a 02', [record({}), record({})]],
  [
    'AMF3 class that is told twice',
    '11 09 05 01 0a 13 03 54 03 61 04 01 0a 01 04 02',
    [record({ a: 1 }), record({ a: 2 })],
  ],
];

for (const [name, bytes, value] of READ_ONLY) {
  test(`AMF is read: ${name}`, (t) => {
    t.deepEqual(decodeAmf0(hex(bytes)), [value]);
  });
}

test('an AMF0 reference is the object itself', (t) => {
  const [first, second] = decodeAmf0(hex('0a 00000002 03 000009 07 0001'))[0] as AmfValue[];
  t.is(first, second);
});

test('long strings are written and read back', (t) => {
  const text = 'x'.repeat(70_000);
  t.deepEqual(decodeAmf0(encodeAmf0(text)), [text]);
});

test('several AMF values follow each other', (t) => {
  const values = ['connect', 1, record({ app: 'live', list: [1, 2], none: null }), undefined];
  t.deepEqual(decodeAmf0(encodeAmf0(...values)), values);
});

const REFUSED: readonly (readonly [string, string])[] = [
  ['unknown marker', '1f'],
  ['number that is cut off', '00 3ff0'],
  ['string that is cut off', '02 0009 66'],
  ['array longer than the body', '0a ffffffff 05'],
  ['reference to nowhere', '07 0009'],
  ['object nested without end', '03 0001 61 '.repeat(40)],
  ['AMF3 marker that no encoder sends', '11 0d'],
  ['AMF3 reference to nowhere', '11 06 02'],
  ['AMF3 array longer than the body', '11 09 ffffffff 01'],
  ['AMF3 externalizable class', '11 0a 07 03 54'],
  ['AMF3 class with more names than bytes', '11 0a fffffffb 01'],
];

for (const [name, bytes] of REFUSED) {
  test(`AMF is rejected: ${name}`, (t) => {
    t.throws(() => decodeAmf0(hex(bytes)), { instanceOf: RtmpError });
  });
}

test('a body of very many values is refused', (t) => {
  t.throws(() => decodeAmf0(Buffer.alloc(100_000, 5)), { instanceOf: RtmpError, message: /more than/ });
});

test('every prefix and every changed byte of a real body is read or refused', (t) => {
  const body = encodeAmf0('connect', 1, record({ app: 'live', nested: record({ a: [1, 'x', new Date(0)] }) }));
  const amf3 = hex('11 0a 1b 03 54 03 61 04 01 03 62 09 05 01 06 03 61 06 00 01');
  for (const whole of [body, amf3]) {
    for (let i = 0; i < whole.length; i++) {
      const variants = [0xff, 0, 0x11].map((value) => changed(whole, i, value));
      for (const bytes of [whole.subarray(0, i), ...variants]) {
        t.notThrows(() => {
          try {
            for (const value of decodeAmf0(bytes)) isAmfObject(value);
          } catch (error) {
            if (!(error instanceof RtmpError)) throw error;
          }
        }, bytes.toString('hex'));
      }
    }
  }
});

function changed(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = value;
  return copy;
}
