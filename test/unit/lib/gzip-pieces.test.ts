import { gunzipSync } from 'node:zlib';
import test from 'ava';
import { deflatePiece, joinToGzip } from '../../../src/lib/gzip-pieces.ts';

async function joined(texts: readonly string[]): Promise<string> {
  return gunzipSync(joinToGzip(await Promise.all(texts.map((text) => deflatePiece(Buffer.from(text)))))).toString();
}

test('pieces become one file, whatever their number and length', async (t) => {
  for (const texts of [[], [''], ['a'], ['#EXTM3U\n', '', 'seg_0.m4s\n'.repeat(10_000)], ['seg\n'.repeat(300), 'ü']]) {
    t.is(await joined(texts), texts.join(''));
  }
});

test('random pieces become the file of the whole', async (t) => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 200; round++) {
    const texts = Array.from({ length: random(6) }, () => String.fromCharCode(97 + random(26)).repeat(random(3000)));
    t.is(await joined(texts), texts.join(''));
  }
});

test('a piece serves several files, and is not changed by them', async (t) => {
  const piece = await deflatePiece(Buffer.from('seg_1.m4s\n'));
  const head = await deflatePiece(Buffer.from('#EXTM3U\n'));
  t.is(gunzipSync(joinToGzip([head, piece])).toString(), '#EXTM3U\nseg_1.m4s\n');
  t.is(gunzipSync(joinToGzip([piece, piece])).toString(), 'seg_1.m4s\nseg_1.m4s\n');
});
