import { createHmac } from 'node:crypto';
import test from 'ava';
import { signature } from '../../../src/control-server/signature.ts';

test('the signature of the example in docs/compatibility.md#signed-urls', (t) => {
  const url = 'ws://192.168.0.100:3333/app/stream?policy=eyJ1cmxfZXhwaXJlIjoxMzk5NzIxNTgxfQ';
  t.is(signature('1kU^b6', url), 'dvVdBpoxAeCPl94Kt5RoiqLI0YE');
});

test('bytes that are no text are signed as they are', (t) => {
  const body = Buffer.from([0xff, 0x00, 0xfe]);
  t.is(signature('key', body), createHmac('sha1', 'key').update(body).digest('base64url'));
});
