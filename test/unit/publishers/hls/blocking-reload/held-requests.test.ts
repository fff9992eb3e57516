import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect } from 'node:net';
import test from 'ava';
import Fastify, { type FastifyInstance } from 'fastify';
import { goneSignal } from '../../../../../src/access/http-request.ts';
import { WaitingOfOne } from '../../../../../src/access/waiting-of-one.ts';
import { KilnError } from '../../../../../src/errors.ts';
import { exchangeOf, type Exchange } from '../../../../../src/publishers/hls/answer/exchange.ts';
import { holdNewOn, holdOn } from '../../../../../src/publishers/hls/blocking-reload/held-requests.ts';
import { Waiters } from '../../../../../src/publishers/hls/blocking-reload/waiters.ts';

const LEAVE = {
  'HTTP/1.1': (port: number) => {
    const client = connect(port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    return () => client.destroy();
  },
  'HTTP/2': (port: number) => {
    const client = connectHttp2(`http://127.0.0.1:${port}`);
    const request = client.request({ ':path': '/' });
    request.on('close', () => client.close());
    return () => request.close(constants.NGHTTP2_CANCEL);
  },
};

for (const [protocol, ask] of Object.entries(LEAVE)) {
  test(`a client that left before its request is held is not waited for: ${protocol}`, async (t) => {
    const app = (protocol === 'HTTP/2' ? Fastify({ http2: true }) : Fastify()) as FastifyInstance;
    t.teardown(() => app.close());
    const { promise, resolve } = Promise.withResolvers<Exchange>();
    app.get('/', (request, reply) => resolve(exchangeOf(request, reply)));
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as { port: number };
    const leave = ask(port);
    const exchange = await promise;
    const left = once(exchange.response as ServerResponse, 'close');
    leave();
    await left;
    t.true(goneSignal(exchange.response).aborted);
    const waiters = new Waiters();
    t.is(await holdOn(exchange)((onLeft) => waiters.wait(() => false, 1e9, onLeft)), 'gone');
    t.is(waiters.size, 0);
  });
}

test('the number of held viewers of one address is limited, over whatever connections, and for whatever streams', async (t) => {
  const waiting = new WaitingOfOne();
  /** An exchange on a connection of its own. */
  const exchange = () => ({ response: new EventEmitter(), request: { socket: {} } }) as unknown as Exchange;
  const waiters = new Waiters();
  const hold = (address: string) =>
    holdNewOn(exchange(), waiting, address)((onLeft) => waiters.wait(() => false, 1e9, onLeft));
  const full = { instanceOf: KilnError, code: 'tooManyWaiting' };
  const held = Array.from({ length: 256 }, () => hold('192.0.2.1'));
  await t.throwsAsync(hold('192.0.2.1'), full);
  t.is(waiters.size, 256);
  const other = hold('192.0.2.2');
  t.is(waiters.size, 257);
  waiters.close();
  await Promise.all([...held, other]);
  const refuse = (): never => {
    throw new KilnError('tooManyWaiting', 503, 'full');
  };
  for (let count = 0; count < 300; count++)
    await t.throwsAsync(holdNewOn(exchange(), waiting, '192.0.2.1')(refuse), full, 'who is not held is not counted');
});
