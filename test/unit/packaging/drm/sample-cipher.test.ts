import { createDecipheriv, randomBytes } from 'node:crypto';
import test from 'ava';
import { CbcCipher, CtrCipher } from '../../../../src/packaging/drm/sample-cipher.ts';

/** Key, IV and blocks of NIST SP 800-38A, F.2.1. */
const KEY = Buffer.from('2b7e151628aed2a6abf7158809cf4f3c', 'hex');
const IV = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
const PLAIN =
  '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51' +
  '30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710';
const SECRET =
  '7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2' +
  '73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7';
const blocks = Array.from({ length: 4 }, (_, index) => PLAIN.slice(32 * index, 32 * index + 32));
const secrets = blocks.map((_, index) => SECRET.slice(32 * index, 32 * index + 32));

test('whole samples of cbcs: blocks of NIST, and an incomplete one in clear', (t) => {
  const sample = Buffer.from(`${PLAIN}0102`, 'hex');
  const cipher = new CbcCipher(KEY, IV, undefined);
  cipher.encrypt(sample, cipher.next(undefined));
  t.is(sample.toString('hex'), `${SECRET}0102`);
});

test('the pattern of cbcs: the chain leaves out what is in clear, and begins anew with each subsample', (t) => {
  const clear = 'ee'.repeat(16 * 9);
  const range = blocks.join(clear);
  const sample = Buffer.from(`0102${range}0304${range}`, 'hex');
  const cipher = new CbcCipher(KEY, IV, { crypt: 1, skip: 9 });
  const encrypted = range.length / 2;
  cipher.encrypt(
    sample,
    cipher.next([
      { clear: 2, encrypted },
      { clear: 2, encrypted },
    ]),
  );
  const expected = secrets.join(clear);
  t.is(sample.toString('hex'), `0102${expected}0304${expected}`);
});

test('cenc: an IV for each sample, and a key stream that goes on over its subsamples', (t) => {
  const cipher = new CtrCipher(KEY, Buffer.from('ffffffffffffffff', 'hex'));
  const plain = randomBytes(100);
  for (const iv of ['ffffffffffffffff', '0000000000000000']) {
    const sample = Buffer.from(plain);
    const protection = cipher.next([
      { clear: 4, encrypted: 32 },
      { clear: 10, encrypted: 48 },
      { clear: 6, encrypted: 0 },
    ]);
    t.is(protection.iv?.toString('hex'), iv);
    cipher.encrypt(sample, protection);
    const back = createDecipheriv('aes-128-ctr', KEY, Buffer.from(iv + '00'.repeat(8), 'hex'));
    t.notDeepEqual(sample.subarray(4, 36), plain.subarray(4, 36));
    t.deepEqual(back.update(sample.subarray(4, 36)), plain.subarray(4, 36));
    t.deepEqual(back.update(sample.subarray(46, 94)), plain.subarray(46, 94));
    for (const [from, to] of [[0, 4] as const, [36, 46] as const, [94, 100] as const])
      t.deepEqual(sample.subarray(from, to), plain.subarray(from, to));
  }
});

test('two tracks do not begin with the same IV', (t) => {
  t.notDeepEqual(new CtrCipher(KEY).next(undefined).iv, new CtrCipher(KEY).next(undefined).iv);
});
