import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { mock } from 'node:test';
import test from 'ava';
import Fastify from 'fastify';
import { exchangeOf } from '../../../../../src/publishers/hls/answer/exchange.ts';
import { respond } from '../../../../../src/publishers/hls/http/respond.ts';

const TWO_MINUTES = 120_000;

test('a client that does not read what it asked for is cut off: it would keep what left the window', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const app = Fastify();
  const body = [Buffer.alloc(64 * 1024 * 1024)];
  let answered = (): void => {};
  const answering = new Promise<void>((resolve) => (answered = resolve));
  app.get('/', (request, reply) => {
    respond(exchangeOf(request, reply), { status: 200, headers: {}, body });
    answered();
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => app.close());
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1').pause();
  t.teardown(() => socket.destroy());
  socket.on('error', () => undefined);
  const [server] = (await once(app.server, 'connection')) as [Socket];
  const cut = once(server, 'close');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await answering;
  t.false(server.destroyed);
  mock.timers.tick(TWO_MINUTES);
  await cut;
  t.true(server.destroyed);
});
