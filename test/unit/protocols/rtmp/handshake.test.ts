import { createHmac, randomBytes } from 'node:crypto';
import test from 'ava';
import { RtmpError } from '../../../../src/protocols/rtmp/error.ts';
import {
  findDigest,
  HANDSHAKE_BYTES,
  ServerHandshake,
  signFirst,
  type DigestScheme,
} from '../../../../src/protocols/rtmp/handshake.ts';

const SERVER_KEY = Buffer.concat([
  Buffer.from('Genuine Adobe Flash Media Server 001'),
  Buffer.from('f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae', 'hex'),
]);

function simpleC1(): Buffer {
  const c1 = randomBytes(HANDSHAKE_BYTES);
  c1.writeUInt32BE(0, 4);
  return c1;
}

test('a simple handshake is answered by an echo', (t) => {
  const c1 = simpleC1();
  const handshake = new ServerHandshake();
  const { taken, answer } = handshake.push(Buffer.concat([Buffer.of(3), c1]));
  t.is(taken, 1 + HANDSHAKE_BYTES);
  t.is(answer?.length, 1 + 2 * HANDSHAKE_BYTES);
  t.is(answer?.[0], 3);
  t.is(answer?.readUInt32BE(5), 0);
  t.deepEqual(answer?.subarray(1 + HANDSHAKE_BYTES), c1);
  t.false(handshake.done);
  const rest = handshake.push(Buffer.alloc(HANDSHAKE_BYTES + 10));
  t.is(rest.taken, HANDSHAKE_BYTES);
  t.is(rest.answer, undefined);
  t.true(handshake.done);
});

for (const scheme of [0, 1] as const satisfies DigestScheme[]) {
  test(`a digest of scheme ${scheme} is answered by digests`, (t) => {
    const c1 = randomBytes(HANDSHAKE_BYTES);
    c1.writeUInt32BE(0x80000702, 4);
    signFirst(c1, 'player', scheme);
    const { answer } = new ServerHandshake().push(Buffer.concat([Buffer.of(3), c1]));
    const s1 = answer?.subarray(1, 1 + HANDSHAKE_BYTES) as Buffer;
    const s2 = answer?.subarray(1 + HANDSHAKE_BYTES) as Buffer;
    t.is(findDigest(s1, 'server')?.scheme, scheme);
    const digest = findDigest(c1, 'player')?.digest as Buffer;
    const key = createHmac('sha256', SERVER_KEY).update(digest).digest();
    const signature = createHmac('sha256', key).update(s2.subarray(0, -32)).digest();
    t.deepEqual(s2.subarray(-32), signature);
  });
}

test('a version number without a valid digest gets the simple answer', (t) => {
  const c1 = randomBytes(HANDSHAKE_BYTES);
  c1.writeUInt32BE(0x80000702, 4);
  const { answer } = new ServerHandshake().push(Buffer.concat([Buffer.of(3), c1]));
  t.deepEqual(answer?.subarray(1 + HANDSHAKE_BYTES), c1);
});

test('bytes may come one by one, and what follows is left alone', (t) => {
  const handshake = new ServerHandshake();
  const all = Buffer.concat([Buffer.of(3), simpleC1(), Buffer.alloc(HANDSHAKE_BYTES)]);
  let answers = 0;
  for (const byte of all) {
    const { taken, answer } = handshake.push(Buffer.of(byte));
    t.is(taken, 1);
    if (answer !== undefined) answers++;
  }
  t.is(answers, 1);
  t.true(handshake.done);
  t.is(handshake.push(Buffer.of(1, 2, 3)).taken, 0);
});

test('another version is rejected at its first byte', (t) => {
  t.throws(() => new ServerHandshake().push(Buffer.of(6)), { instanceOf: RtmpError, message: /version 6/ });
  t.throws(() => new ServerHandshake().push(Buffer.from('GET / HTTP/1.1')), { instanceOf: RtmpError });
});
