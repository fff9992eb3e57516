import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { RemoteKeys } from '../../../../src/access/jwt/remote-keys.ts';
import { EC, HMAC, keySet, RSA } from '../../../support/access/tokens.ts';
import { until } from '../../../support/time/until.ts';

const MINUTE = 60_000;

/** Keys whose server and clock the test moves. */
function remote(t: ExecutionContext, keepMs = 60 * MINUTE) {
  const state = { now: 0, answer: keySet({ one: EC }) as string | Error, fetches: 0 };
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(String(JSON.parse(line).msg)) });
  const source = new RemoteKeys({
    url: 'https://id.example/keys',
    now: () => state.now,
    fetch: async () => {
      state.fetches++;
      if (state.answer instanceof Error) throw state.answer;
      return state.answer;
    },
    log,
  });
  t.teardown(() => source.close());
  const ids = async (id?: string) => (await source.keys(id, keepMs)).map((key) => key.id);
  const fetched = (count: number) => until(`fetch ${count}`, () => state.fetches >= count);
  return { source, state, lines, ids, fetched };
}

test('keys are fetched once for all who come together, and are there for the next', async (t) => {
  const { ids, state } = remote(t);
  t.deepEqual(await Promise.all([ids('one'), ids('one'), ids()]), [['one'], ['one'], ['one']]);
  state.now += 9 * MINUTE;
  await ids('one');
  t.is(state.fetches, 1);
});

test('a token with an unknown key has the keys fetched, once a minute at most', async (t) => {
  const { ids, state } = remote(t);
  await ids('one');
  state.answer = keySet({ one: EC, two: RSA });
  state.now += MINUTE - 1;
  t.deepEqual(await ids('two'), ['one']);
  state.now += 1;
  t.deepEqual(await Promise.all([ids('two'), ids('two')]), [
    ['one', 'two'],
    ['one', 'two'],
  ]);
  for (let client = 0; client < 100; client++) await ids(`made up ${client}`);
  t.is(state.fetches, 2);
});

test('keys that are in use are fetched again after ten minutes, without a wait', async (t) => {
  const { ids, state, fetched } = remote(t);
  await ids('one');
  state.answer = keySet({ two: RSA });
  state.now += 10 * MINUTE;
  t.deepEqual(await ids('one'), ['one']);
  await fetched(2);
  await until('the next keys', async () => (await ids()).includes('two'));
});

test('the last keys stay while the server is away, until their time is over', async (t) => {
  const { ids, state, lines, fetched } = remote(t, 30 * MINUTE);
  await ids('one');
  state.answer = new Error('it is away');
  state.now += 20 * MINUTE;
  t.deepEqual(await ids('one'), ['one']);
  await fetched(2);
  state.now += 9 * MINUTE;
  t.deepEqual(await ids('one'), ['one']);
  await fetched(3);
  state.now += MINUTE;
  await t.throwsAsync(() => ids('one'), { message: /there are no keys for tokens: it is away/ });
  t.deepEqual(lines, ['the keys for tokens cannot be read']);
  state.answer = keySet({ two: RSA });
  state.now += MINUTE;
  t.deepEqual(await ids('two'), ['two']);
  t.deepEqual(lines.slice(1), ['the keys for tokens can be read again']);
});

test('without keys nobody comes in, and clients do not ask for them again and again', async (t) => {
  const { ids, state } = remote(t);
  state.answer = '{"keys":[]}';
  for (let client = 0; client < 10; client++)
    await t.throwsAsync(() => ids('one'), { message: /there is no key of RS256/ });
  // the server itself tries again every ten seconds
  t.true(state.fetches < 10);
});

test('keys that were withdrawn while nobody came are not used', async (t) => {
  const { ids, state } = remote(t, 24 * 60 * MINUTE);
  await ids('one');
  state.answer = keySet({ two: RSA });
  state.now += 600 * MINUTE;
  t.deepEqual(await ids('one'), ['two']);
});

test('secrets that a URL publishes are not taken', async (t) => {
  const { ids, state } = remote(t);
  state.answer = keySet({ one: EC, secret: HMAC });
  t.deepEqual(await ids('one'), ['one']);
  state.answer = keySet({ secret: HMAC });
  state.now += 20 * MINUTE;
  await t.notThrowsAsync(() => ids('one'), 'the last ones stay');
});
