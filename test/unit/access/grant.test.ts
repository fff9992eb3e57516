import { mock } from 'node:test';
import test from 'ava';
import { combined, Grant } from '../../../src/access/grant.ts';
import type { WebhookSession } from '../../../src/access/webhook-session.ts';
import { NO_WEBHOOK_SESSIONS, WEBHOOK_SESSION } from '../../support/access/access.ts';

const DAY = 24 * 3_600_000;

test.beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 }));
test.afterEach.always(() => mock.timers.reset());

test.serial('the earliest end of all guards counts; without any there is none', (t) => {
  t.deepEqual(combined([]), { openings: [] });
  t.deepEqual(combined([{ until: 70 }, {}, { until: 50 }, { until: 60 }]), { until: 50, openings: [] });
});

/** A grant with two webhook sessions, and what of them is closed. */
function opened() {
  const ends: string[] = [];
  const verdicts = [{ session: WEBHOOK_SESSION }, {}, { session: { ...WEBHOOK_SESSION, id: 'two' } }];
  const close = ({ id }: WebhookSession, reason: string) => void ends.push(`${id}: ${reason}`);
  return { ends, grant: new Grant(combined(verdicts), { ...NO_WEBHOOK_SESSIONS, close }) };
}

test.serial('all openings of guards are closed by the end of a grant, exactly once', (t) => {
  const { ends, grant } = opened();
  grant.end('it left');
  grant.end('it left again');
  t.deepEqual(ends, ['one: it left', 'two: it left']);
});

test.serial('openings that are handed over are not closed here', (t) => {
  const { ends, grant } = opened();
  t.deepEqual(grant.handOver().openings, [WEBHOOK_SESSION, { ...WEBHOOK_SESSION, id: 'two' }]);
  grant.end('it left');
  t.deepEqual(ends, []);
  t.deepEqual(grant.handOver(), { openings: [] });
});

test.serial('a session is closed when its time is over, and not before, however long that is', (t) => {
  const closed: string[] = [];
  new Grant({ until: Date.now() + 40 * DAY, openings: [] }, NO_WEBHOOK_SESSIONS).limit(
    (reason) => void closed.push(reason),
  );
  for (let hour = 0; hour < 40 * 24 - 1; hour++) mock.timers.tick(3_600_000);
  t.deepEqual(closed, []);
  mock.timers.tick(3_600_000);
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('a clock that is set forward ends a session within a minute', (t) => {
  const closed: string[] = [];
  const set = Date.now() + DAY;
  new Grant({ until: set - 1, openings: [] }, NO_WEBHOOK_SESSIONS).limit((reason) => void closed.push(reason));
  const now = mock.method(Date, 'now', () => set);
  t.teardown(() => now.mock.restore());
  mock.timers.tick(60_000);
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('a grant whose time is over already is closed at once', (t) => {
  const closed: string[] = [];
  new Grant({ until: Date.now() - 1, openings: [] }, NO_WEBHOOK_SESSIONS).limit((reason) => void closed.push(reason));
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('a revoked session is closed once, as soon as it is open', (t) => {
  const closed: string[] = [];
  const close = (reason: string): void => void closed.push(reason);
  const open = new Grant({ openings: [] }, NO_WEBHOOK_SESSIONS);
  open.limit(close);
  open.revoke('not paid');
  open.revoke('again');
  const early = new Grant({ openings: [] }, NO_WEBHOOK_SESSIONS);
  early.revoke('early');
  early.onRevoked(close);
  const ended = new Grant({ openings: [] }, NO_WEBHOOK_SESSIONS);
  ended.limit(close);
  ended.end('it left');
  ended.revoke('late');
  t.deepEqual(closed, ['not paid', 'early']);
  t.true(open.expired);
});

test.serial('another end takes the place of the one that a webhook gave, and not of those that others gave', (t) => {
  const closed: string[] = [];
  const now = Date.now();
  const state = combined([{ until: now + 5000 }, { until: now + 1000, session: WEBHOOK_SESSION }]);
  t.is(state.until, now + 1000);
  const grant = new Grant(state, NO_WEBHOOK_SESSIONS);
  grant.limit((reason) => void closed.push(reason));
  grant.relimit(now + 60_000);
  mock.timers.tick(4000);
  t.deepEqual(closed, []);
  grant.relimit(undefined);
  mock.timers.tick(1000);
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('another end is known to a holder that looks after it, and from before the session is open', (t) => {
  const closed: string[] = [];
  const close = (reason: string): void => void closed.push(reason);
  const [held, early] = [1, 2].map(() => new Grant({ until: Date.now() + 5000, openings: [] }, NO_WEBHOOK_SESSIONS));
  held?.onRevoked(close);
  held?.relimit(Date.now() + 1000);
  t.is(held?.until, Date.now() + 1000);
  mock.timers.tick(1000);
  t.deepEqual(closed, []);
  early?.relimit(Date.now() + 1000);
  early?.limit(close);
  mock.timers.tick(1000);
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('a session that has ended is not closed later', (t) => {
  const closed: string[] = [];
  const grant = new Grant({ until: Date.now() + 1000, openings: [] }, NO_WEBHOOK_SESSIONS);
  grant.limit((reason) => void closed.push(reason));
  grant.end('it left');
  mock.timers.tick(2000);
  grant.limit((reason) => void closed.push(reason));
  mock.timers.tick(2000);
  t.deepEqual(closed, []);
});
