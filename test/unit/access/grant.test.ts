import { mock } from 'node:test';
import test from 'ava';
import { Grant } from '../../../src/access/grant.ts';

const DAY = 24 * 3_600_000;

test.beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 }));
test.afterEach.always(() => mock.timers.reset());

test.serial('the earliest end of all guards counts; without any there is none', (t) => {
  t.is(new Grant([]).until, undefined);
  t.is(new Grant([{ until: 70 }, {}, { until: 50 }, { until: 60 }]).until, 50);
});

test.serial('every guard is told of the end, exactly once', (t) => {
  const ends: string[] = [];
  const grant = new Grant([
    { end: (reason) => void ends.push(`one: ${reason}`) },
    {},
    { end: (reason) => void ends.push(`two: ${reason}`) },
  ]);
  grant.end('it left');
  grant.end('it left again');
  t.deepEqual(ends, ['one: it left', 'two: it left']);
});

test.serial('a session is closed when its time is over, and not before, however long that is', (t) => {
  const closed: string[] = [];
  new Grant([{ until: Date.now() + 40 * DAY }]).limit((reason) => void closed.push(reason));
  for (let hour = 0; hour < 40 * 24 - 1; hour++) mock.timers.tick(3_600_000);
  t.deepEqual(closed, []);
  mock.timers.tick(3_600_000);
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('one whose time is over already is closed at once', (t) => {
  const closed: string[] = [];
  new Grant([{ until: Date.now() - 1 }]).limit((reason) => void closed.push(reason));
  t.deepEqual(closed, ['its allowed time is over']);
});

test.serial('a session that has ended is not closed later', (t) => {
  const closed: string[] = [];
  const grant = new Grant([{ until: Date.now() + 1000 }]);
  grant.limit((reason) => void closed.push(reason));
  grant.end('it left');
  mock.timers.tick(2000);
  grant.limit((reason) => void closed.push(reason));
  mock.timers.tick(2000);
  t.deepEqual(closed, []);
});
