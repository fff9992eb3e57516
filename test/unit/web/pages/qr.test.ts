import { createHash } from 'node:crypto';
import test from 'ava';

type Modules = readonly (readonly boolean[])[];
const { qrCode } = (await import(new URL('../../../../src/web/pages/qr.js', import.meta.url).href)) as {
  qrCode: (text: string) => Modules | undefined;
};

const ADDRESS = 'https://live.example.com/app/stream?policy=';
/** By length: the size, and the start of a digest of the code, which zbarimg 0.23.92 has read. */
const READ: readonly (readonly [length: number, size: number, digest: string])[] = [
  [1, 21, '848f621f7ecfca7e'],
  [14, 21, 'cdbf6655b7bce673'],
  [15, 25, '23d073d7c1338618'],
  [62, 33, 'b234df51ab8f2f4c'],
  [106, 41, '51d18de8f0833636'],
  [134, 49, '576fcccfd2ba7162'],
  [213, 57, 'fd72ec6a594e32dd'],
  [214, 61, '66d62acc56e21d39'],
  [666, 97, '9fe8aab8e641ba19'],
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
