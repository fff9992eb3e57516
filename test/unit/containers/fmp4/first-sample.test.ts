import test from 'ava';
import { emsg } from '../../../../src/containers/fmp4/emsg.ts';
import { firstSampleEnd } from '../../../../src/containers/fmp4/first-sample.ts';
import { fragment, type Sample } from '../../../../src/containers/fmp4/fragment.ts';

const sample = (bytes: number, key = false): Sample => ({
  duration: 3000,
  compositionOffset: 0,
  key,
  data: Buffer.alloc(bytes, bytes),
});

test('the first sample ends after the head and its own bytes', (t) => {
  for (const type of ['video', 'audio'] as const) {
    const samples = [sample(700, true), sample(20), sample(30)];
    const bytes = fragment(type, 1, 0, samples);
    t.is(firstSampleEnd(bytes), bytes.length - 50);
    t.deepEqual(bytes.subarray((firstSampleEnd(bytes) ?? 0) - 700, firstSampleEnd(bytes)), samples[0]?.data);
  }
});

test('events in front of the fragment count', (t) => {
  const event = emsg({ scheme: 'urn:x', value: '', time: 0, id: 1, message: Buffer.from('hello') });
  const plain = fragment('video', 1, 0, [sample(100, true), sample(9)]);
  const bytes = fragment('video', 1, 0, [sample(100, true), sample(9)], [event]);
  t.is(firstSampleEnd(bytes), event.length + (firstSampleEnd(plain) ?? 0));
});

test('a known fragment', (t) => {
  const hex =
    '0000004c6d6f6f66' +
    '000000106d66686400000000' +
    '00000001' +
    '0000003474726166' +
    '000000107466686400020000' +
    '00000001' +
    '0000001c7472756e00000205' +
    '00000001' +
    '00000054' +
    '02000000' +
    '00000003' +
    '0000000c6d646174' +
    'aabbccdd';
  t.is(firstSampleEnd(Buffer.from(hex, 'hex')), 0x4c + 8 + 3);
});

test('other bytes have no first sample', (t) => {
  const whole = fragment('video', 1, 0, [sample(100, true)]);
  for (let length = 0; length < whole.length; length++) t.is(firstSampleEnd(whole.subarray(0, length)), undefined);
  let seed = 3;
  for (let round = 0; round < 2000; round++) {
    const bytes = Buffer.from(whole);
    for (let change = 0; change < 3; change++) {
      seed = (seed * 48_271) % 2_147_483_647;
      bytes[seed % bytes.length] = seed % 251;
    }
    t.true((firstSampleEnd(bytes) ?? 0) <= bytes.length);
  }
});
