import test from 'ava';
import { fileHeader, fileTag } from '../../../../src/containers/flv/file.ts';
import { readFlv } from '../../../support/flv/tags.ts';

test('the header of an FLV file names the kinds of its tracks', (t) => {
  const header = (hasVideo: boolean, hasAudio: boolean) => fileHeader({ hasVideo, hasAudio }).toString('hex');
  t.is(header(true, true), '464c5601050000000900000000');
  t.is(header(true, false), '464c5601010000000900000000');
  t.is(header(false, true), '464c5601040000000900000000');
});

test('a tag of an FLV file has the upper bits of its time in a byte of their own, and its size behind it', (t) => {
  const tag = Buffer.concat(fileTag(9, 0x12345678, [Buffer.of(0x17, 1), Buffer.of(0, 0, 0)]));
  t.is(tag.toString('hex'), '0900000534567812000000170100000000000010');
  const late = Buffer.concat(fileTag(8, 2 ** 32 + 1, []));
  t.is(late.toString('hex'), '08000000000001000000000000000b', 'it starts again after 49 days');
  const long = fileTag(9, 2 ** 31, [Buffer.alloc(70_000)]);
  const file = Buffer.concat([fileHeader({ hasVideo: true, hasAudio: false }), tag, ...long]);
  t.deepEqual(
    readFlv(file).tags.map(({ type, time, body }) => [type, time, body.length]),
    [
      [9, 0x12345678, 5],
      [9, 2 ** 31, 70_000],
    ],
  );
});
