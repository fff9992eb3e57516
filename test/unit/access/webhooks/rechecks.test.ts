import { mock } from 'node:test';
import test from 'ava';
import { Rechecks } from '../../../../src/access/webhooks/rechecks.ts';
import { ControlServerError } from '../../../../src/control-server/post.ts';

const CALL = {
  client: { address: '192.0.2.1', port: 1, real_ip: '192.0.2.1' },
  protocol: 'RTMP',
  direction: 'incoming',
  url: 'rtmp://a/b/c',
  time: 500,
} as const;
const ALLOWED = { allowed: true, newUrl: undefined, lifetime: undefined, reason: '' };
const INTERVAL_MS = 1000;

test.beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 }));
test.afterEach.always(() => mock.timers.reset());

/** Lets what was answered be judged. */
const turn = (): Promise<void> => new Promise(setImmediate);

/** Rechecks whose calls are answered by hand. */
function open(intervals: Record<string, number> = { default: INTERVAL_MS }) {
  const calls: { readonly id: string; readonly answer: (given: object) => void; readonly fail: () => void }[] = [];
  const events: string[] = [];
  const rechecks = new Rechecks({
    intervalOf: (vhost) => intervals[vhost] ?? 0,
    ask: (_vhost, { url }) =>
      new Promise((resolve, reject) => {
        const fail = (): void => reject(new ControlServerError('it is away', false));
        calls.push({ id: url, answer: (given) => resolve({ ...ALLOWED, ...given }), fail });
      }),
    onFault: (error) => void events.push(error.message),
    faults: { count: (fault) => void events.push(fault) },
  });
  const watch = (id: string, more: object = {}): void =>
    rechecks.watch(
      { id, vhost: 'default', call: { ...CALL, url: id }, ...more },
      {
        revoke: (reason) => void events.push(`${id}: ${reason}`),
        relimit: (until) => void events.push(`${id}: ${until}`),
      },
    );
  return { rechecks, calls, events, intervals, watch };
}

test.serial('a session is asked about within the interval, and then at each interval after an answer', async (t) => {
  const { calls, watch, events } = open();
  watch('one');
  mock.timers.tick(INTERVAL_MS / 2 - 1);
  t.is(calls.length, 0, 'not at once');
  mock.timers.tick(INTERVAL_MS / 2 + 1);
  t.is(calls.length, 1);
  mock.timers.tick(10 * INTERVAL_MS);
  t.is(calls.length, 1, 'a slow server is not asked twice at a time');
  calls[0]?.answer({});
  await turn();
  mock.timers.tick(INTERVAL_MS - 1);
  t.is(calls.length, 1);
  mock.timers.tick(1);
  t.is(calls.length, 2);
  t.deepEqual(events, []);
});

test.serial('sessions that began together are asked about at different times', (t) => {
  const { calls, watch } = open();
  for (let n = 0; n < 16; n++) watch(`s${n}`);
  const times = new Set<number>();
  for (let ms = 0; ms < INTERVAL_MS; ms += 50) {
    const before = calls.length;
    mock.timers.tick(50);
    if (calls.length > before) times.add(ms);
  }
  t.is(calls.length, 16);
  t.true(times.size > 1);
});

test.serial('few calls are under way at once, and each session waits for one', async (t) => {
  const { calls, watch } = open();
  for (let n = 0; n < 1000; n++) watch(`s${n}`);
  mock.timers.tick(INTERVAL_MS);
  t.is(calls.length, 16);
  for (let n = 0; n < 1000; n++) {
    calls[n]?.answer({});
    await turn();
  }
  t.deepEqual([calls.length, new Set(calls.map(({ id }) => id)).size], [1000, 1000]);
});

test.serial(
  'a refusal ends a session, a fault does not, and another lifetime counts from the first call on',
  async (t) => {
    const { calls, watch, events } = open();
    watch('one', { lifetime: 7000 });
    const next = async (settle: (call: (typeof calls)[number] | undefined) => void): Promise<void> => {
      mock.timers.tick(INTERVAL_MS);
      settle(calls.at(-1));
      await turn();
    };
    await next((call) => call?.answer({ lifetime: 7000, newUrl: 'rtmp://a/b/d' }));
    t.deepEqual(events, [], 'nothing has changed');
    await next((call) => call?.answer({ lifetime: 9000 }));
    await next((call) => call?.answer({ lifetime: 9000 }));
    await next((call) => call?.answer({}));
    await next((call) => call?.fail());
    await next((call) => call?.answer({ allowed: false, reason: 'not paid' }));
    t.deepEqual(events, [
      'one: 9500',
      'one: undefined',
      'a session goes on without an answer to its recheck: it is away',
      'one: the control server does not allow it any more: not paid',
    ]);
    mock.timers.tick(10 * INTERVAL_MS);
    t.is(calls.length, 6);
  },
);

test.serial('nothing is asked about sessions that have ended, are unknown, or of hosts without rechecks', async (t) => {
  const { rechecks, calls, watch, events, intervals } = open();
  watch('gone');
  rechecks.drop('gone');
  watch('unknown', { call: undefined });
  watch('elsewhere', { vhost: 'other' });
  mock.timers.tick(INTERVAL_MS);
  t.is(calls.length, 0);
  watch('leaves');
  mock.timers.tick(INTERVAL_MS);
  rechecks.drop('leaves');
  calls[0]?.answer({ allowed: false });
  await turn();
  t.deepEqual(events, []);
  watch('changed');
  mock.timers.tick(INTERVAL_MS);
  intervals['default'] = 0;
  calls[1]?.answer({});
  await turn();
  mock.timers.tick(10 * INTERVAL_MS);
  t.is(calls.length, 2);
  intervals['default'] = INTERVAL_MS;
  watch('closed');
  rechecks.close();
  mock.timers.tick(10 * INTERVAL_MS);
  t.is(calls.length, 2);
});
