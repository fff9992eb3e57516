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

test('a session is revoked with any of its grants, and not with one that has ended', (t) => {
  const ends: string[] = [];
  const revoked: string[] = [];
  const grants: SessionGrants = new SessionGrants(new RecentSet<string>(10), (id, reason) => {
    revoked.push(`${id}: ${reason}`);
    grants.end(id, reason);
  });
  const [gone, one, other] = ['gone', 'one', 'other'].map(
    (id) => new Grant({ openings: [{ id, vhost: 'default' }] }, notedSessions(ends)),
  ) as [Grant, Grant, Grant];
  grants.hold('before', gone as never, 0);
  grants.end('before', 'it left');
  grants.hold('viewer', one as never, 0);
  grants.hold('viewer', other as never, 0);
  gone.revoke('not paid');
  one.revoke('not paid');
  other.revoke('not paid');
  t.deepEqual(revoked, ['viewer: not paid']);
  t.deepEqual(ends, ['it left', 'not paid', 'not paid']);
  t.is(grants.stateOf('viewer', [{ id: 'one', vhost: 'default' }]), 'ended');
});
