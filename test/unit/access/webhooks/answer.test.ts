import test from 'ava';
import { ControlServerError } from '../../../../src/control-server/post.ts';
import { readAnswer } from '../../../../src/access/webhooks/answer.ts';

const read = (body: unknown, status = 200) =>
  readAnswer({ status, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) });

test('an answer allows or not; a lifetime of 0 and an empty URL are none', (t) => {
  t.deepEqual(read({ allowed: true }), { allowed: true, newUrl: undefined, lifetime: undefined, reason: '' });
  t.deepEqual(read({ allowed: false, reason: 'x'.repeat(300), more: {} }), {
    allowed: false,
    newUrl: undefined,
    lifetime: undefined,
    reason: 'x'.repeat(200),
  });
  t.deepEqual(read({ allowed: true, new_url: 'rtmp://a/b/c', lifetime: 1500, reason: 'paid' }), {
    allowed: true,
    newUrl: 'rtmp://a/b/c',
    lifetime: 1500,
    reason: 'paid',
  });
  t.like(read({ allowed: true, new_url: '', lifetime: 0 }), { newUrl: undefined, lifetime: undefined });
});

for (const [body, message, status] of [
  [{ allowed: true }, 'it answered with status 302', 302],
  [{ allowed: true }, 'it answered with status 201', 201],
  ['', 'it answered with something that is not JSON'],
  ['{"allowed":true', 'it answered with something that is not JSON'],
  [{}, 'it answered wrongly'],
  [null, 'it answered wrongly'],
  [[{ allowed: true }], 'it answered wrongly'],
  [{ allowed: 'true' }, 'it answered wrongly: allowed'],
  [{ allowed: 1 }, 'it answered wrongly: allowed'],
  [{ allowed: true, lifetime: -1 }, 'it answered wrongly: lifetime'],
  [{ allowed: true, lifetime: '60000' }, 'it answered wrongly: lifetime'],
  [{ allowed: true, lifetime: 1e300 }, 'it answered wrongly: lifetime'],
  [{ allowed: true, new_url: {} }, 'it answered wrongly: new_url'],
  [{ allowed: true, new_url: null }, 'it answered wrongly: new_url'],
  [{ allowed: true, reason: 7 }, 'it answered wrongly: reason'],
] as const) {
  test(`${JSON.stringify(body)} with status ${status ?? 200} allows nothing`, (t) => {
    t.throws(() => read(body, status), { instanceOf: ControlServerError, message });
  });
}
