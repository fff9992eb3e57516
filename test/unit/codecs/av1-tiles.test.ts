import test from 'ava';
import { OBU, obus } from '../../../src/codecs/av1-obu.ts';
import { allowsSkipMode, chooseReferences, relativeDistance } from '../../../src/codecs/av1-references.ts';
import { readTileInfo } from '../../../src/codecs/av1-tile-info.ts';
import { Av1Tiles } from '../../../src/codecs/av1-tiles.ts';
import { BitReader, BitstreamError, BitWriter } from '../../../src/codecs/bits.ts';
import { box, samples, vector } from './vectors.ts';

for (const name of ['av1-svt.mp4', 'av1-aom-444.mp4']) {
  test(`each frame of ${name} has one tile, up to its end`, (t) => {
    const reader = new Av1Tiles();
    for (const data of samples(vector(name))) {
      reader.begin();
      for (const obu of obus(data)) {
        const ranges = reader.read(obu);
        t.is(ranges.length, obu.type === OBU.frame ? 1 : 0);
        for (const { from, to } of ranges) t.true(from > 0 && from < to && to === obu.payload.length);
      }
    }
  });

  test(`a start in the middle of ${name}, and data that is cut off or changed, are errors or tiles within the data`, (t) => {
    const config = box(vector(name), 'av1C').subarray(4);
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    const units = samples(vector(name));
    for (let round = 0; round < 300; round++) {
      const reader = new Av1Tiles();
      for (const obu of obus(config)) reader.read(obu);
      for (const unit of units.slice(random(2))) {
        const data = Buffer.from(unit.subarray(0, random(3) === 0 ? random(unit.length) : unit.length));
        for (let changes = random(4); changes > 0 && data.length > 0; changes--)
          data[random(Math.min(60, data.length))] = random(256);
        try {
          reader.begin();
          for (const obu of obus(data))
            for (const { from, to } of reader.read(obu)) t.true(from <= to && to <= obu.payload.length);
        } catch (error) {
          t.true(error instanceof BitstreamError, String(error));
        }
      }
    }
  });
}

test('tiles of one size, and of sizes of their own', (t) => {
  const size = { width: 4096, height: 2176 };
  // 64 x 34 superblocks: two steps to four columns, one to two rows
  const uniform = new BitWriter().flag(true).write(0b110, 3).write(0b10, 2).write(5, 3).write(2, 2).finish();
  const reader = new BitReader(uniform);
  t.deepEqual(readTileInfo(reader, size, false), { count: 8, numberBits: 3, sizeBytes: 3 });
  t.is(reader.position, 11);
  // columns of 32, 32; rows of 34
  const own = new BitWriter()
    .flag(false)
    .write(31, 6)
    .write(31, 5)
    .write(31, 5)
    .write(1, 1)
    .write(0, 1)
    .write(0, 2)
    .align()
    .finish();
  t.is(readTileInfo(new BitReader(own), size, false).count, 2);
  t.deepEqual(readTileInfo(new BitReader(Buffer.of(0x80)), { width: 64, height: 64 }, true), {
    ...{ count: 1, numberBits: 0, sizeBytes: 4 },
  });
});

test('order hints wrap around', (t) => {
  t.is(relativeDistance(1, 127, 7), 2);
  t.is(relativeDistance(127, 1, 7), -2);
  t.is(relativeDistance(5, 3, 0), 0);
});

test('references that a frame does not name', (t) => {
  const hints = [10, 12, 14, 16, 24, 20, 8, 6];
  t.deepEqual(chooseReferences(hints, 18, 7, 3, 0), [3, 2, 1, 0, 5, 6, 4]);
  t.deepEqual(chooseReferences([1, 1, 1, 1, 1, 1, 1, 1], 2, 7, 0, 1).slice(0, 4), [0, 7, 6, 1]);
});

test('modes can be skipped between two references, or after two', (t) => {
  t.true(allowsSkipMode([4, 12, 4, 4, 4, 4, 4], 8, 7));
  t.true(allowsSkipMode([4, 2, 4, 4, 4, 4, 4], 8, 7));
  t.false(allowsSkipMode([4, 4, 4, 4, 4, 4, 4], 8, 7));
  t.false(allowsSkipMode([12, 14, 12, 12, 12, 12, 12], 8, 7));
});
