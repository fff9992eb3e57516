import { PassThrough } from 'node:stream';
import test from 'ava';
import { pino } from 'pino';
import Type from 'typebox';
import { OutcomeUnknownError, type NodeIdentity, type PeerRequest, type PeerResponse } from '#cluster';
import { kilnError } from '../../../src/errors.ts';
import { definePeerCall } from '../../../src/peers/peer-call.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { linkedNodes } from '../../support/cluster/linked-nodes.ts';

type Linked = ReturnType<typeof linkedNodes>[number];

const DOUBLE = definePeerCall(
  'test/double',
  Type.Object({ text: Type.String(), times: Type.Integer({ minimum: 0 }), more: Type.Optional(Type.String()) }),
  Type.Object({ text: Type.String() }),
);
const FILE = definePeerCall('test/file', Type.Null(), Type.Object({ type: Type.String() }));
const TIMEOUT = 1000;
const ELSEWHERE: NodeIdentity = { id: 'elsewhere', incarnation: '1' };

function pair(): [Linked, Linked] {
  return linkedNodes('a', 'b') as [Linked, Linked];
}

/** A node whose calls are answered with `answer`, and what it logs. */
function answeredWith(answer: () => Promise<PeerResponse>) {
  const lines: { msg: string; count: number }[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { calls: new PeerCalls({ serve: () => {}, forward: answer }, log), lines };
}

test('a call brings its request and its answer, of whatever text', async (t) => {
  const [a, b] = pair();
  b.calls.answer(DOUBLE, ({ text, times }, from) => ({ text: `${from.id}: ${text.repeat(times)}` }));
  const text = 'ü "quoted"\n\u2028 /%2F';
  t.deepEqual(await a.calls.call(b.self, DOUBLE, { text, times: 2 }, TIMEOUT), { text: `a: ${text}${text}` });
});

test('an answer may have bytes, which are not touched', async (t) => {
  const [a, b] = pair();
  const bytes = Buffer.from([0, 255, 10, 13, 0]);
  b.calls.answerBytes(FILE, () => ({ answer: { type: 'ä/b' }, bytes }));
  t.deepEqual(await a.calls.callForBytes(b.self, FILE, null, TIMEOUT), { answer: { type: 'ä/b' }, bytes });
  b.calls.answerBytes(FILE, () => ({ answer: { type: 'x' }, bytes: Buffer.alloc(0) }));
  t.is((await a.calls.callForBytes(b.self, FILE, null, TIMEOUT)).bytes.length, 0);
});

test('an error of the table is thrown where the call came from, with its text', async (t) => {
  const [a, b] = pair();
  b.calls.answer(DOUBLE, () => Promise.reject(kilnError('sessionExists', 'ü')));
  await t.throwsAsync(a.calls.call(b.self, DOUBLE, { text: '', times: 1 }, TIMEOUT), {
    name: 'KilnError',
    code: 'sessionExists',
    message: kilnError('sessionExists', 'ü').message,
  });
  // which is another thing than a node that does not know the call
  b.calls.answer(DOUBLE, () => Promise.reject(kilnError('streamNotFound', 's')));
  await t.throwsAsync(a.calls.call(b.self, DOUBLE, { text: '', times: 1 }, TIMEOUT), { code: 'streamNotFound' });
  a.calls.close();
  b.calls.close();
  t.deepEqual([...a.lines, ...b.lines], []);
});

test('a call that a node of another version does not know is callUnknown, which need not be logged', async (t) => {
  const [a, b] = pair();
  await t.throwsAsync(a.calls.call(b.self, DOUBLE, { text: '', times: 1 }, TIMEOUT), {
    name: 'KilnError',
    code: 'callUnknown',
  });
  b.calls.answer(FILE, () => ({ type: 'other' }));
  await t.throwsAsync(a.calls.call(b.self, DOUBLE, { text: '', times: 1 }, TIMEOUT), { code: 'callUnknown' });
  b.calls.close();
  t.deepEqual(b.lines, []);
});

test('a request that does not fit is refused before it has an effect, and logged once with its node', async (t) => {
  const [a, b] = pair();
  let acted = 0;
  b.calls.answer(DOUBLE, () => ({ text: String(acted++) }));
  const bodies = ['', 'null', '{', '[]', '{"text":"x"}', '{"text":"x","times":-1}', '{"text":1,"times":1}', '\xff'];
  for (const body of bodies) {
    const request: PeerRequest = {
      method: 'POST',
      path: '/test/double',
      headers: {},
      body: Buffer.from(body, 'latin1'),
    };
    const { status } = await a.forward(b.self, request, TIMEOUT);
    t.is(status, 400, body);
  }
  await t.throwsAsync(a.calls.call(b.self, DOUBLE, { text: 'x', times: -1 }, TIMEOUT), { code: 'callUnknown' });
  t.is(acted, 0);
  // what a later version adds is passed over
  const later = { text: 'x', times: 1, added: { by: 'a later version' } };
  t.is((await a.calls.call(b.self, DOUBLE, later, TIMEOUT)).text, '0');
  b.calls.close();
  t.deepEqual(
    b.lines.map(({ msg, count }) => [msg, count]),
    [['node a: The body of the call test/double does not match its schema', bodies.length + 1]],
  );
});

test('an answer that does not fit leaves the outcome unknown, and is logged once with its node', async (t) => {
  const answers: [number, Record<string, string>, string][] = [
    [200, {}, ''],
    [200, {}, 'null'],
    [200, {}, '{"text":1}'],
    [200, { 'kiln-answer': '{' }, '{"text":"x"}'],
  ];
  for (const [status, headers, body] of answers) {
    const { calls, lines } = answeredWith(async () => ({ status, headers, body: Buffer.from(body) }));
    const called = calls.call(ELSEWHERE, DOUBLE, { text: '', times: 1 }, TIMEOUT);
    await t.throwsAsync(called, { name: 'KilnError', code: 'ownerSilent' }, body);
    calls.close();
    t.deepEqual(
      lines.map(({ msg }) => msg),
      ['node elsewhere: the answer to test/double does not match its schema'],
    );
  }
  for (const status of [500, 201, 503]) {
    const { calls } = answeredWith(async () => ({ status, headers: {}, body: Buffer.from('{"text":""}') }));
    await t.throwsAsync(calls.call(ELSEWHERE, DOUBLE, { text: '', times: 1 }, TIMEOUT), { code: 'ownerSilent' });
  }
});

test('a node that cannot be reached, and one of which no answer came', async (t) => {
  const [a] = linkedNodes('a') as [Linked];
  const request = { text: '', times: 1 };
  await t.throwsAsync(a.calls.call(ELSEWHERE, DOUBLE, request, TIMEOUT), { code: 'ownerUnreachable' });
  const { calls, lines } = answeredWith(() => Promise.reject(new OutcomeUnknownError('gone')));
  const error = await t.throwsAsync(calls.call(ELSEWHERE, DOUBLE, request, TIMEOUT), { code: 'ownerSilent' });
  t.is((error?.cause as Error).message, 'gone');
  calls.close();
  t.deepEqual(lines, []);
});

test('a handler that fails is logged where it failed, together with others of its kind, and leaves the outcome unknown', async (t) => {
  const [a, b] = pair();
  b.calls.answer(DOUBLE, () => (undefined as unknown as { property: never }).property);
  for (let n = 0; n < 2; n++) {
    await t.throwsAsync(a.calls.call(b.self, DOUBLE, { text: '', times: 1 }, TIMEOUT), { code: 'ownerSilent' });
  }
  b.calls.close();
  t.is(b.lines.length, 1);
  t.is(b.lines[0]?.count, 2);
  t.regex(b.lines[0]?.msg ?? '', /call \/test\/double of another node failed: TypeError: .*peer-calls\.test\.ts/s);
});

test('streams of bytes are found by the beginning of their path; a call or stream without a handler is refused', async (t) => {
  const [a, b] = pair();
  const get = (path: string) => a.forward(b.self, { method: 'GET', path, headers: {}, body: Buffer.alloc(0) }, TIMEOUT);
  t.is((await get('/unknown')).status, 404);
  const refused = new PassThrough();
  b.handlers()?.stream?.(refused, '/unknown', a.self);
  t.true(refused.destroyed);
  b.calls.addStreams('/broken/', () => {
    throw new Error('no');
  });
  const given = new PassThrough();
  t.notThrows(() => b.handlers()?.stream?.(given, '/broken/a', a.self));
  t.true(given.destroyed);
  b.calls.close();
  t.deepEqual(b.lines.length, 1);
  t.regex(b.lines[0]?.msg ?? '', /stream \/broken\/ of another node failed: Error: no/);
});
