import test from 'ava';
import { Mp4File } from '../../../../src/containers/fmp4/file.ts';
import { audioTrack, videoTrack } from '../../../support/packets.ts';

const VIDEO = videoTrack();
const SOUND = audioTrack();

function packet(track: typeof VIDEO | typeof SOUND, dts: number, data: string, key = true, offset = 0) {
  return { track, dts, pts: dts + offset, duration: 0, key, data: Buffer.from(data, 'hex') };
}

test('at its end a file has tables of all samples, in one mdat around the fragments', (t) => {
  const file = new Mp4File([VIDEO, SOUND]);
  const pieces: Buffer[] = [];
  for (const one of [
    packet(VIDEO, 90_000, 'aa', true, 3000),
    packet(SOUND, 48_480, '0101'),
    packet(VIDEO, 93_000, 'bbbb', false, 3000),
    packet(SOUND, 49_504, '0202'),
    packet(VIDEO, 96_000, 'cc', true, 3000),
  ])
    pieces.push(...file.write(one));
  const { tail, patches } = file.end();
  const bytes = Buffer.concat([...pieces, ...tail]);
  for (const { at, data } of patches) data.copy(bytes, at);
  const head = bytes.readUInt32BE(0);
  t.is(bytes.toString('latin1', head + 4, head + 8), 'mdat');
  const movie = head + Number(bytes.readBigUInt64BE(head + 8));
  t.is(bytes.toString('latin1', movie + 4, movie + 8), 'moov');
  t.is(movie + bytes.readUInt32BE(movie), bytes.length);
  const moov = bytes.subarray(movie);
  const table = (type: string, entry = 0) => {
    const at = moov.indexOf(type, entry);
    return moov.subarray(at + 8, at - 4 + moov.readUInt32BE(at - 4)).toString('hex');
  };
  // three pictures of 3000 ticks, shown 3000 later, of which the second is no key frame
  t.is(table('stts'), '000000010000000300000bb8');
  t.is(table('ctts'), '000000010000000300000bb8');
  t.is(table('stss'), '000000020000000100000003');
  t.is(table('stsz'), '0000000000000003000000010000000200000001');
  t.is(table('stsc'), '00000002000000010000000200000001000000020000000100000001');
  const chunks = table('co64');
  t.is(chunks.slice(0, 8), '00000002');
  const first = Number.parseInt(chunks.slice(8, 24), 16);
  t.is(bytes.toString('hex', first, first + 3), 'aabbbb');
  // the sound begins 10 ms later: 900 ticks of the movie
  const sound = moov.lastIndexOf('trak');
  t.is(
    table('elst', sound),
    '00000002' +
      '0000000000000384' +
      'ffffffffffffffff' +
      '00010000' +
      '0000000000000f00' +
      '0000000000000000' +
      '00010000',
  );
});

test('nothing is put out for no packets', (t) => {
  t.deepEqual(new Mp4File([VIDEO]).end(), { tail: [], patches: [] });
});
