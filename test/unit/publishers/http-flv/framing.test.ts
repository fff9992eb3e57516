import test from 'ava';
import { FRAMINGS } from '../../../../src/publishers/http-flv/framing.ts';

const pieces = (...lengths: number[]): Buffer[] => lengths.map((length) => Buffer.alloc(length, length & 0xff));

test('media is framed as chunks of HTTP/1.1', (t) => {
  t.is(FRAMINGS.chunked([Buffer.from('ab'), Buffer.from('c')]).toString(), '3\r\nabc\r\n');
  t.is(FRAMINGS.chunked(pieces(255, 1)).toString('latin1', 0, 5), '100\r\n');
  t.deepEqual(FRAMINGS.plain([Buffer.from('ab'), Buffer.from('c')]), Buffer.from('abc'));
});

test('media is framed as binary messages of a WebSocket', (t) => {
  const head = (length: number, bytes: number) => FRAMINGS.message(pieces(length)).toString('hex', 0, bytes);
  t.is(head(0, 2), '8200');
  t.is(head(125, 2), '827d');
  t.is(head(126, 4), '827e007e');
  t.is(head(65_535, 4), '827effff');
  t.is(head(65_536, 10), '827f0000000000010000');
  t.is(FRAMINGS.message(pieces(2, 1)).toString('hex'), '8203020201');
});
