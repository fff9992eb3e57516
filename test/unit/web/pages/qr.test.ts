import { createHash } from 'node:crypto';
import test from 'ava';
import generator from 'qrcode-generator';

type Modules = readonly (readonly boolean[])[];
const page = (await import(new URL('../../../../src/web/pages/qr.js', import.meta.url).href)) as {
  qrCode: (library: typeof generator, text: string) => Modules | undefined;
};
const qrCode = (text: string): Modules | undefined => page.qrCode(generator, text);

const ADDRESS = 'https://live.example.com/app/stream?policy=';
/** By length: the size, and the start of a digest of the code, which zbar 0.23.92 has read. */
const READ: readonly (readonly [length: number, size: number, digest: string])[] = [
  [1, 21, 'aad9569a842202d9'],
  [14, 21, '7987b4cfe9e4cadc'],
  [15, 25, '995edbb5addcb4a6'],
  [62, 33, 'b234df51ab8f2f4c'],
  [106, 41, '51f76da515569afc'],
  [134, 49, '173ae7f9ae4431a1'],
  [213, 57, '8c3519e2397479da'],
  [214, 61, '69e46963e1b14610'],
  [666, 97, '7d78549bb9d46e92'],
];

test('codes are those that a reader has read, at the ends of versions and with several blocks', (t) => {
  for (const [length, size, digest] of READ) {
    const modules = qrCode(ADDRESS.padEnd(length, 'abc-_0').slice(0, length));
    t.is(modules?.length, size);
    const text = modules?.map((row) => row.map(Number).join('')).join('\n') ?? '';
    t.is(createHash('sha256').update(text).digest('hex').slice(0, 16), digest, `of ${length} characters`);
  }
});

test('a text of more bytes than fit has no code, whatever its characters', (t) => {
  t.is(qrCode('x'.repeat(667)), undefined);
  t.is(qrCode('é'.repeat(334)), undefined);
  t.is(qrCode('é'.repeat(333))?.length, 97);
});
