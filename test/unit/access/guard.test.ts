import test from 'ava';
import { askGuards, askGuardsNow, type Guard, type Verdict } from '../../../src/access/guard.ts';
import { kilnError } from '../../../src/errors.ts';
import type { VirtualHost } from '../../../src/core/vhost.ts';
import { NO_WEBHOOK_SESSIONS, notedSessions, WEBHOOK_SESSION, playRequest } from '../../support/access/access.ts';

const VHOST = {} as VirtualHost;

/** A guard that notes its turn, and answers a moment later. */
function asking(turns: string[], name: string, verdict?: Verdict): Guard {
  return () => async () => {
    turns.push(name);
    await Promise.resolve();
    return verdict;
  };
}

test('guards are asked one after the other, in their order, and all of their verdicts count', async (t) => {
  const turns: string[] = [];
  const local: Guard = () => {
    turns.push('local');
    return { until: 5 };
  };
  const verdicts = await askGuards(
    [asking(turns, 'first', { until: 7 }), local, () => undefined, asking(turns, 'last', { target: { app: 'other' } })],
    playRequest(),
    VHOST,
    NO_WEBHOOK_SESSIONS,
  );
  t.deepEqual(turns, ['first', 'local', 'last']);
  t.deepEqual(verdicts, [{ until: 7 }, { until: 5 }, { target: { app: 'other' } }]);
});

test('no guard after one that rejects, or fails, is asked, and those before it are notified', async (t) => {
  const refusals: readonly (readonly [Guard, RegExp])[] = [
    [
      () => {
        throw kilnError('accessDenied');
      },
      /Access denied/,
    ],
    [() => () => Promise.reject(new Error('it is broken')), /it is broken/],
    [
      () => {
        throw new TypeError('it is broken at once');
      },
      /broken at once/,
    ],
  ];
  for (const [refusing, message] of refusals) {
    const turns: string[] = [];
    const ends: string[] = [];
    const first = asking(turns, 'first', { session: WEBHOOK_SESSION });
    const guards = [first, refusing, asking(turns, 'last')];
    await t.throwsAsync(askGuards(guards, playRequest(), VHOST, notedSessions(ends)), { message });
    t.deepEqual(turns, ['first']);
    t.is(ends.length, 1);
    t.regex(ends[0] ?? '', message);
  }
});

test('a guard that hangs lets go of a client that goes away, and its late verdict ends at once', async (t) => {
  const gone = new AbortController();
  const answer = Promise.withResolvers<Verdict>();
  const ends: string[] = [];
  let heard: AbortSignal | undefined;
  const hanging: Guard = () => (signal) => {
    heard = signal;
    return answer.promise;
  };
  const asked = askGuards([hanging], playRequest({ signal: gone.signal }), VHOST, notedSessions(ends));
  gone.abort();
  await t.throwsAsync(asked, { code: 'clientGone' });
  t.true(heard?.aborted);
  t.deepEqual(ends, []);
  answer.resolve({ session: WEBHOOK_SESSION });
  await answer.promise;
  await Promise.resolve();
  t.deepEqual(ends, ['The client has gone']);
});

test('a client that has already left is not asked about', async (t) => {
  const turns: string[] = [];
  const request = playRequest({ signal: AbortSignal.abort() });
  await t.throwsAsync(askGuards([asking(turns, 'one')], request, VHOST, NO_WEBHOOK_SESSIONS), { code: 'clientGone' });
  t.deepEqual(turns, []);
});

test('guards are asked in turn until one has to ask a server', (t) => {
  const turns: string[] = [];
  const local: Guard = () => {
    turns.push('local');
    return undefined;
  };
  t.true(askGuardsNow([local, local], playRequest(), VHOST));
  t.deepEqual(turns, ['local', 'local']);
  t.false(askGuardsNow([local, asking(turns, 'asks'), local], playRequest(), VHOST));
  t.deepEqual(turns, ['local', 'local', 'local'], 'no question was put, and who comes behind it waits for its answer');
  const refusing: Guard = () => {
    throw kilnError('accessDenied');
  };
  t.throws(() => askGuardsNow([local, refusing], playRequest(), VHOST), { code: 'accessDenied' });
});
