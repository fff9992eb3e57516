import Fastify, { type FastifyRequest } from 'fastify';
import test, { type ExecutionContext } from 'ava';
import { jsonLogger } from '../../../src/log/log.ts';
import { logFailures } from '../../../src/web/request-log.ts';

/** An app whose route does with its request what a test wants, and the lines of its log. */
function open(t: ExecutionContext, route: (request: FastifyRequest) => unknown) {
  const lines: Record<string, unknown>[] = [];
  const log = jsonLogger('trace', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const app = Fastify({ ...logFailures(log.child({ module: 'web' })), genReqId: () => 'id-1' });
  app.get('/', async (request) => route(request));
  t.teardown(() => app.close());
  return { app, lines };
}

test('a request that succeeds or finds nothing logs nothing, at no level', async (t) => {
  const { app, lines } = open(t, () => 'done');
  t.is((await app.inject('/')).body, 'done');
  t.is((await app.inject('/elsewhere')).statusCode, 404);
  t.deepEqual(lines, []);
});

test('a request that fails is logged with its id and what Fastify writes of requests', async (t) => {
  const { app, lines } = open(t, () => {
    throw new Error('of a test');
  });
  await app.inject('/?a=b');
  t.is(lines.length, 1);
  t.like(lines[0], { level: 'error', module: 'web', requestId: 'id-1', msg: 'of a test' });
  t.like(lines[0]?.req, { method: 'GET', url: '/?a=b' });
});

test('lines of a route have the id of the request, also those of loggers made of its own', async (t) => {
  const { app, lines } = open(t, ({ log }) => {
    log.info('too quiet');
    log.warn({ a: 1 }, 'one');
    log.error('two');
    log.fatal('three');
    log.child({ b: 2 }).warn('four');
    return log.level;
  });
  t.is((await app.inject('/')).body, 'warn');
  t.deepEqual(
    lines.map(({ level, requestId, msg }) => [level, requestId, msg]),
    [
      ['warn', 'id-1', 'one'],
      ['error', 'id-1', 'two'],
      ['fatal', 'id-1', 'three'],
      ['warn', 'id-1', 'four'],
    ],
  );
  t.is(lines[0]?.a, 1);
  t.is(lines[3]?.b, 2);
});

test('a fault in answering is logged with the id of the request', async (t) => {
  const { app, lines } = open(t, () => 'done');
  app.addHook('onResponse', (_request, _reply, done) => done(new Error('too late')));
  await app.inject('/');
  t.is(lines.length, 1);
  t.like(lines[0], { level: 'error', requestId: 'id-1', msg: 'request errored' });
});
