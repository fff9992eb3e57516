import test from 'ava';
import { NutError } from '../../../../src/containers/nut/error.ts';
import { seeded } from '../../codecs/vectors.ts';
import { NAMES, read, vector } from './support.ts';

const ROUNDS = 1500;

/** Throws whatever is neither frames nor a NutError. */
function feed(nut: Buffer, chunk: number): void {
  try {
    const bytes = read(nut, chunk).frames.reduce((sum, { data }) => sum + data.length, 0);
    // an elision header of 1024 bytes can come with every byte
    if (bytes > nut.length * 1025) throw new Error(`${bytes} bytes out of ${nut.length}`);
  } catch (error) {
    if (!(error instanceof NutError)) throw new Error(`for ${nut.toString('hex')}`, { cause: error });
  }
}

for (const name of NAMES) {
  test(`${name}: spoilt bytes are frames or a NutError`, (t) => {
    const random = seeded(20_261_120);
    const upTo = (limit: number) => Math.floor(random() * limit);
    const nut = vector(`${name}.nut`);
    for (let round = 0; round < ROUNDS; round++) {
      const spoilt = Buffer.from(nut);
      for (let changes = 1 + upTo(4); changes > 0; changes--) spoilt[upTo(spoilt.length)] = upTo(256);
      const cut = upTo(spoilt.length);
      const pieceMissing = Buffer.concat([spoilt.subarray(0, cut), spoilt.subarray(cut + upTo(40))]);
      const pieceTwice = Buffer.concat([spoilt.subarray(0, cut), spoilt.subarray(Math.max(0, cut - upTo(40)))]);
      t.notThrows(() => {
        feed(spoilt, 1 + upTo(spoilt.length));
        feed(pieceMissing, 4096);
        feed(pieceTwice, 4096);
      });
    }
  });
}

/** Noise never gets past a checksum: this is what is behind them. */
test('noise behind the headers is frames or a NutError', (t) => {
  const random = seeded(7);
  const upTo = (limit: number) => Math.floor(random() * limit);
  for (const name of NAMES) {
    const nut = vector(`${name}.nut`);
    const start = nut.lastIndexOf(Buffer.from('4e4be4adeeca4569', 'hex')) + 20;
    for (let round = 0; round < ROUNDS; round++) {
      const noise = Buffer.from(Array.from({ length: upTo(300) }, () => upTo(256)));
      t.notThrows(() => feed(Buffer.concat([nut.subarray(0, start), noise]), 1 + upTo(400)));
    }
  }
});
