import test from 'ava';
import { Grant } from '../../../../../src/access/grant.ts';
import { RecentSet } from '../../../../../src/lib/recent-set.ts';
import { SessionGrants } from '../../../../../src/publishers/hls/sessions/session-grants.ts';
import { notedSessions } from '../../../../support/access/access.ts';

const MAX_SESSIONS = 50_000;

test('a grant beyond the number of sessions ends at once, and its session does not come back', (t) => {
  const ends: string[] = [];
  const openings = notedSessions(ends);
  const grants = new SessionGrants(new RecentSet<string>(10));
  const grant = (id: string) => new Grant({ openings: [{ id, vhost: 'default' }] }, openings);
  for (let n = 0; n < MAX_SESSIONS; n++) grants.hold(`s${n}`, grant(`o${n}`), 0);
  t.throws(() => grants.hold('more', grant('more'), 0), { code: 'tooManyConnections' });
  t.deepEqual(ends.length, 1);
  t.is(grants.stateOf('more', [{ id: 'more', vhost: 'default' }]), 'ended');
  t.notThrows(() => grants.hold('s1', grant('again'), 0), 'sessions that are held may get more');
});
