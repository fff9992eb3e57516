import test from 'ava';
import { SourceError } from '../../../../src/playback/byte-source.ts';
import { PIECE_BYTES } from '../../../../src/playback/piece-memory.ts';
import { readParts } from '../../../../src/playback/clip/read-parts.ts';
import { collect, MemoryFile } from '../../../support/recording/recorded-mp4.ts';

const BYTES = Buffer.from(Array.from({ length: 600_000 }, (_, index) => index % 251));
const source = new MemoryFile(BYTES);

test('parts are read one after another, in pieces of 256 KiB', async (t) => {
  const spans = [
    { source, from: 5, to: 10 },
    { source, from: 0, to: 600_000 },
    { source, from: 7, to: 7 },
    { source, from: 599_999, to: 600_000 },
  ];
  const sizes: number[] = [];
  for await (const { length } of readParts([Buffer.alloc(10), ...spans])) sizes.push(length);
  t.deepEqual(sizes, [PIECE_BYTES, PIECE_BYTES, 600_016 - 2 * PIECE_BYTES]);
  const expected = Buffer.concat(spans.map(({ from, to }) => BYTES.subarray(from, to)));
  t.true((await collect(readParts(spans))).equals(expected));
  t.is((await collect(readParts([]))).length, 0);
});

test('what cannot be read ends the pieces where they would be, whether they are asked for or not', async (t) => {
  const spans = [
    { source, from: 0, to: PIECE_BYTES },
    { source, from: 599_999, to: 600_001 },
  ];
  const pieces = readParts(spans);
  t.is((await pieces.next()).value?.length, PIECE_BYTES);
  await t.throwsAsync(pieces.next(), { instanceOf: SourceError });
  t.true((await pieces.next()).done);
  const left = readParts(spans);
  await left.next();
  await left.return(undefined);
  t.true((await left.next()).done);
});
