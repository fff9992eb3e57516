import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import Fastify, { type FastifyReply } from 'fastify';
import { holdOn } from '../../../../src/publishers/playlists/hold.ts';
import { Waiters } from '../../../../src/publishers/playlists/waiters.ts';

test('a client that left before its request is held is not waited for', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  const { promise, resolve } = Promise.withResolvers<() => FastifyReply>();
  app.get('/', (_request, reply) => resolve(() => reply));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as { port: number };
  const client = connect(port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  // a reply itself would be waited for
  const reply = (await promise)();
  const left = once(reply.raw, 'close');
  client.destroy();
  await left;
  const waiters = new Waiters();
  t.is(await holdOn(reply)((onLeft) => waiters.wait(() => false, 1e9, onLeft)), 'gone');
  t.is(waiters.size, 0);
});
