import test from 'ava';
import { Grant } from '../../../../../src/access/grant.ts';
import { RecentSet } from '../../../../../src/lib/recent-set.ts';
import { SessionGrants } from '../../../../../src/publishers/hls/sessions/session-grants.ts';
import { notedSessions } from '../../../../support/access/access.ts';

const MAX_SESSIONS = 50_000;

test('a grant beyond the number of sessions ends at once, and its session does not come back', (t) => {
  const ends: string[] = [];
  const openings = notedSessions(ends);
  const grants = new SessionGrants(new RecentSet<string>(10), () => {});
  const grant = (id: string) => new Grant({ openings: [{ id, vhost: 'default' }] }, openings);
  for (let n = 0; n < MAX_SESSIONS; n++) grants.hold(`s${n}`, grant(`o${n}`), 0);
  t.throws(() => grants.hold('more', grant('more'), 0), { code: 'tooManyConnections' });
  t.deepEqual(ends.length, 1);
  t.is(grants.stateOf('more', [{ id: 'more', vhost: 'default' }]), 'ended');
  t.notThrows(() => grants.hold('s1', grant('again'), 0), 'sessions that are held may get more');
});

test('a revoked grant ends alone, and the session with the last one', (t) => {
  const ends: string[] = [];
  const over: string[] = [];
  const grants = new SessionGrants(new RecentSet<string>(10), (id) => over.push(id));
  const [gone, one, other] = ['gone', 'one', 'other'].map(
    (id) => new Grant({ openings: [{ id, vhost: 'default' }] }, notedSessions(ends)),
  ) as [Grant, Grant, Grant];
  const isOver = (id: string): boolean => grants.isOver('viewer', [{ id, vhost: 'default' }]);
  grants.hold('before', gone, 0);
  grants.end('before', 'it left');
  grants.hold('viewer', one, 0);
  grants.hold('viewer', other, 0);
  gone.revoke('not paid');
  one.revoke('not paid');
  t.deepEqual([isOver('one'), isOver('other'), over], [true, false, []]);
  other.revoke('not paid');
  t.deepEqual([isOver('other'), over], [true, ['viewer']]);
  t.deepEqual(ends, ['it left', 'not paid', 'not paid']);
});

test('a grant that was replaced is not over, and one whose end was set earlier is, then', (t) => {
  const grants = new SessionGrants(new RecentSet<string>(100), () => {});
  const all = Array.from(
    { length: 10 },
    (_, n) => new Grant({ openings: [{ id: `o${n}`, vhost: 'default' }] }, notedSessions([])),
  );
  for (const grant of all) grants.hold('viewer', grant, 0);
  t.false(grants.isOver('viewer', [{ id: 'o0', vhost: 'default' }]), 'players that began with it play on');
  all[9]?.relimit(1000);
  grants.endOver('viewer', 999);
  t.false(grants.isOver('viewer', [{ id: 'o9', vhost: 'default' }]));
  grants.endOver('viewer', 1000);
  t.true(grants.isOver('viewer', [{ id: 'o9', vhost: 'default' }]));
});
