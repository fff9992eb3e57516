import Fastify from 'fastify';
import test, { type ExecutionContext } from 'ava';
import { readYourWrites } from '../../../../src/api/forwarding/read-your-writes.ts';

/** A node whose store and directory answer when a test says so. */
function open(t: ExecutionContext, { alone = false, pending = true, stale = false } = {}) {
  const asked: string[] = [];
  const wait = (what: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    return { promise, resolve, reject, ask: () => (asked.push(what), promise) };
  };
  const store = wait('store');
  const directory = wait('directory');
  const dynamic = { stale, sync: () => (pending ? store.ask() : undefined) };
  const app = Fastify();
  readYourWrites(app, dynamic, alone ? undefined : { catchUp: directory.ask });
  let handled = 0;
  const handler = () => `handled ${++handled}`;
  app.get('/', handler);
  app.get('/metrics', { config: { isMeasurement: true } }, handler);
  app.setNotFoundHandler((_request, reply) => reply.code(404).send('nothing'));
  t.teardown(() => app.close());
  return { app, asked, store, directory, handled: () => handled };
}

test('a node that runs alone answers at once, if its listeners have handled every change', async (t) => {
  const { app, asked } = open(t, { alone: true, pending: false });
  const answer = await app.inject('/');
  t.is(answer.body, 'handled 1');
  t.is(answer.headers['x-kiln-stale'], undefined);
  t.deepEqual(asked, []);
});

test('a node that runs alone waits for listeners of changes', async (t) => {
  const { app, asked, store, handled } = open(t, { alone: true });
  await app.ready();
  const answering = app.inject('/').then(({ body }) => body);
  while (asked.length < 2) await new Promise(setImmediate);
  t.is(handled(), 0);
  store.resolve();
  t.is(await answering, 'handled 1');
});

test('a node of a cluster asks the store and the directory together, and marks what may lack something', async (t) => {
  const { app, asked, store, directory, handled } = open(t, { stale: true });
  await app.ready();
  const answering = app.inject('/').then(({ headers }) => headers['x-kiln-stale']);
  while (asked.length < 2) await new Promise(setImmediate);
  t.deepEqual(asked, ['store', 'directory']);
  store.resolve();
  await new Promise(setImmediate);
  t.is(handled(), 0);
  directory.resolve();
  t.is(await answering, 'true');
});

test('a measurement is answered without asking, an unknown path is not', async (t) => {
  const { app, asked, store, directory } = open(t);
  t.is((await app.inject('/metrics')).body, 'handled 1');
  t.deepEqual(asked, []);
  store.resolve();
  directory.resolve();
  t.is((await app.inject('/unknown')).statusCode, 404);
  t.deepEqual(asked, ['store', 'directory']);
});

test('a store that fails fails the call', async (t) => {
  const { app, store, handled } = open(t);
  store.reject(new Error('of a test'));
  t.is((await app.inject('/')).statusCode, 500);
  t.is(handled(), 0);
});
