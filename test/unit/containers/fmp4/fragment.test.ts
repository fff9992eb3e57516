import test from 'ava';
import { fragment } from '../../../../src/containers/fmp4/fragment.ts';
import { parseFragment } from '../../../support/media/boxes.ts';

test('a part of two video frames, byte for byte', (t) => {
  const bytes = fragment('video', 7, 2 ** 32 + 5, [
    { duration: 3000, compositionOffset: 6000, key: true, data: Buffer.from('aabbcc', 'hex') },
    { duration: 2999, compositionOffset: -1, key: false, data: Buffer.from('dd', 'hex') },
  ]);
  t.is(
    bytes.toString('hex'),
    [
      '0000007c',
      '6d6f6f66', // moof
      '00000010',
      '6d666864',
      '00000000',
      '00000007', // mfhd
      '00000064',
      '74726166', // traf
      '00000014',
      '74666864',
      '00020020',
      '00000001',
      '01010000', // tfhd: base is moof, default flags
      '00000014',
      '74666474',
      '01000000',
      '0000000100000005', // tfdt, 64 bits
      '00000034',
      '7472756e',
      '01000f01',
      '00000002',
      '00000084', // trun, version 1: signed offsets
      '00000bb8',
      '00000003',
      '02000000',
      '00001770',
      '00000bb7',
      '00000001',
      '01010000',
      'ffffffff',
      '0000000c',
      '6d646174',
      'aabbccdd',
    ].join(''),
  );
});

test('sound carries neither flags nor composition offsets', (t) => {
  const bytes = fragment('audio', 1, 0, [
    { duration: 1024, compositionOffset: 0, key: true, data: Buffer.alloc(4, 9) },
  ]);
  const { samples, payload, duration } = parseFragment(bytes);
  t.deepEqual(samples, [{ duration: 1024, size: 4, flags: undefined, offset: undefined }]);
  t.deepEqual(payload, Buffer.alloc(4, 9));
  t.is(duration, 1024);
});

test('the largest sequence number and a decode time beyond 2^53 / 2 survive', (t) => {
  const baseTime = 2 ** 52 + 12345;
  const parsed = parseFragment(
    fragment('video', 2 ** 32 + 3, baseTime, [{ duration: 1, compositionOffset: 0, key: true, data: Buffer.alloc(0) }]),
  );
  t.is(parsed.baseTime, baseTime);
  t.is(parsed.sequence, 3);
});
