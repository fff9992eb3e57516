import { PassThrough } from 'node:stream';
import test from 'ava';
import { pino } from 'pino';
import type { NodeIdentity, PeerHandler, PeerStreamHandler } from '#cluster';
import { PeerCalls } from '../../../src/origins/peer-calls.ts';
import { peerRequest } from '../../../src/origins/other-nodes.ts';

const FROM: NodeIdentity = { id: 'b', incarnation: '1' };

/** The calls of a node, as its cluster makes them, and what it logs. */
function open() {
  const lines: { msg: string; count: number }[] = [];
  const handlers: { call?: PeerHandler; stream?: PeerStreamHandler | undefined } = {};
  const serve = (call: PeerHandler, stream?: PeerStreamHandler): void => void Object.assign(handlers, { call, stream });
  const calls = new PeerCalls(
    { serve },
    pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
  );
  return {
    calls,
    lines,
    call: async (path: string) => handlers.call?.(peerRequest('GET', path), FROM),
    stream: (stream: PassThrough, path: string) => handlers.stream?.(stream, path, FROM),
  };
}

test('a call that fails is told of here, with where it failed, and together with others of its kind', async (t) => {
  const { calls, lines, call } = open();
  calls.add('/broken/', async () => (undefined as unknown as { property: never }).property);
  await t.throwsAsync(call('/broken/a'), { instanceOf: TypeError });
  await t.throwsAsync(call('/broken/b'), { instanceOf: TypeError });
  calls.close();
  t.is(lines.length, 1);
  t.is(lines[0]?.count, 2);
  t.regex(lines[0]?.msg ?? '', /call \/broken\/ of another node failed: TypeError: .*peer-calls\.test\.ts/s);
});

test('what nobody answers is not found, and logs nothing', async (t) => {
  const { calls, lines, call, stream } = open();
  calls.add('/known/', async () => ({ status: 200, headers: {}, body: Buffer.from('yes') }));
  t.is((await call('/known/a'))?.body.toString(), 'yes');
  t.is((await call('/unknown'))?.status, 404);
  const refused = new PassThrough();
  stream(refused, '/unknown');
  t.true(refused.destroyed);
  calls.close();
  t.deepEqual(lines, []);
});

test('a stream whose taker fails is ended, and told of', (t) => {
  const { calls, lines, stream } = open();
  calls.addStreams('/broken/', () => {
    throw new Error('no');
  });
  const given = new PassThrough();
  t.notThrows(() => stream(given, '/broken/a'));
  t.true(given.destroyed);
  calls.close();
  t.regex(lines[0]?.msg ?? '', /stream \/broken\/ of another node failed: Error: no/);
});
