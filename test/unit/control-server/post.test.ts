import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import { ControlServerError, post, type Post } from '../../../src/control-server/post.ts';

const PINNED = 'ab'.repeat(32);
const CALL: Omit<Post, 'url'> = { headers: {}, body: Buffer.from('x'), timeout: 200, maxAnswerBytes: 100 };
const never = new AbortController().signal;

/** Takes connections and says nothing. */
async function mute(t: { teardown(action: () => void): void }) {
  const server = createServer((socket) => void socket.resume().on('error', () => {})).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test('a pinned server that never speaks TLS is given up in time', async (t) => {
  const url = await mute(t);
  await t.throwsAsync(post({ ...CALL, url, fingerprint: PINNED }, never), {
    instanceOf: ControlServerError,
    message: 'no connection within 200 ms',
  });
});

test('a call to a pinned server that never speaks TLS can be aborted', async (t) => {
  const url = await mute(t);
  const stop = new AbortController();
  const calling = post({ ...CALL, timeout: 60_000, url, fingerprint: PINNED }, stop.signal);
  setImmediate(() => stop.abort());
  await t.throwsAsync(calling, { instanceOf: ControlServerError });
});

test('a pinned server without a port in its URL is called on 443', async (t) => {
  const calling = post({ ...CALL, url: 'https://127.0.0.1/', fingerprint: PINNED }, never);
  await t.throwsAsync(calling, { instanceOf: ControlServerError, message: /127\.0\.0\.1:443/ });
});

test('headers that cannot be sent are an error of the call', async (t) => {
  const calling = post({ ...CALL, url: 'https://127.0.0.1/', headers: { Authorization: 'key\u200b' } }, never);
  await t.throwsAsync(calling, { instanceOf: ControlServerError, message: /Authorization/ });
});
