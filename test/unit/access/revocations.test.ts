import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Grant } from '../../../src/access/grant.ts';
import { markOf, Revocations } from '../../../src/access/revocations.ts';
import { NO_WEBHOOK_SESSIONS } from '../../support/access/access.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const PLACE = { vhost: 'default', app: 'app', stream: 'stream' };
const LATER = '2099-01-01T00:00:00Z';

async function open(t: ExecutionContext) {
  const cluster = await openAlone();
  const revocations = new Revocations();
  revocations.follow(cluster.config);
  t.teardown(() => revocations.close());
  const ends: string[] = [];
  const session = (id: string, marks: string[], place = PLACE): Grant => {
    const grant = new Grant({ openings: [], marks }, NO_WEBHOOK_SESSIONS);
    grant.watchedBy(revocations, place);
    grant.limit((reason) => void ends.push(`${id}: ${reason}`));
    return grant;
  };
  return { revocations, cluster, ends, session };
}

test.serial('sessions with all that a revocation names end, and such ones are refused until it is over', async (t) => {
  virtualTime(t);
  const { revocations, ends, session } = await open(t);
  const [jti, address] = [markOf('jti', 'one'), markOf('address', '192.0.2.1')];
  session('both', [jti, address]);
  session('token alone', [jti, markOf('address', '192.0.2.2')]);
  session('elsewhere', [jti, address], { ...PLACE, stream: 'other' });
  session('left', [jti, address]).end('it left');
  const expires = new Date(Date.now() + 5000).toISOString();
  const { id } = await revocations.add({ jti: 'one', address: '::ffff:192.0.2.1', stream: 'stream', expires });
  t.deepEqual(ends, ['both: an operator has revoked it']);
  t.is(revocations.ended, 1);
  t.throws(() => revocations.check([jti, address], PLACE), { code: 'accessDenied' });
  t.notThrows(() => revocations.check([jti], PLACE));
  t.like(revocations.list(), [{ id, jti: 'one', expires }]);
  await delay(5000);
  t.notThrows(() => revocations.check([jti, address], PLACE));
  t.deepEqual(revocations.list(), []);
});

test.serial(
  'another node, or one that starts later, has what the store has, and one that was taken back is gone',
  async (t) => {
    const { revocations, cluster } = await open(t);
    const policy = 'eyJ1cmxfZXhwaXJlIjoxfQ';
    const { id } = await revocations.add({ policy, expires: LATER });
    t.false(JSON.stringify([...cluster.config.entries()]).includes(policy), 'it is not in clear there');
    const later = new Revocations();
    later.follow(cluster.config);
    t.teardown(() => later.close());
    const marks = [markOf('policy', policy)];
    t.true(later.revokes(marks, PLACE));
    t.true(await later.remove(id));
    t.false(await later.remove(id));
    await delay(0);
    t.false(later.revokes(marks, PLACE));
  },
);

test.serial('a revocation that comes while a session opens ends it when it is open', async (t) => {
  const { revocations, ends } = await open(t);
  const grant = new Grant({ openings: [], marks: [markOf('sub', 'me')] }, NO_WEBHOOK_SESSIONS);
  revocations.check(grant.marks, PLACE);
  grant.watchedBy(revocations, PLACE);
  await revocations.add({ sub: 'me', expires: LATER });
  grant.limit((reason) => void ends.push(reason));
  t.deepEqual(ends, ['an operator has revoked it']);
});

test.serial('two nodes that make room at once both revoke', async (t) => {
  virtualTime(t);
  const { revocations, cluster } = await open(t);
  const other = new Revocations();
  other.follow(cluster.config);
  t.teardown(() => other.close());
  await revocations.add({ jti: 'short', expires: new Date(Date.now() + 1000).toISOString() });
  await delay(2000);
  await Promise.all([revocations.add({ jti: 'one', expires: LATER }), other.add({ jti: 'two', expires: LATER })]);
  t.deepEqual(
    revocations
      .list()
      .map(({ jti }) => jti)
      .toSorted(),
    ['one', 'two'],
  );
});

test.serial('an entry that this version does not understand revokes nobody', async (t) => {
  const { revocations, cluster } = await open(t);
  const value = { id: 'x', expires: LATER, jti: 'one', country: 'xx' };
  await cluster.config.write([{ key: '%23revocation/x', value, seen: 0 }]);
  await cluster.config.write([{ key: '%23revocation/y', value: { id: 'y', expires: LATER }, seen: 0 }]);
  const later = new Revocations();
  later.follow(cluster.config);
  t.teardown(() => later.close());
  for (const one of [revocations, later]) t.false(one.revokes([markOf('jti', 'one')], PLACE));
});

test.serial('their number is limited, and those that are over make room', async (t) => {
  virtualTime(t);
  const { revocations } = await open(t);
  const soon = new Date(Date.now() + 60_000).toISOString();
  for (let n = 0; n < 1000; n++) await revocations.add({ jti: `j${n}`, expires: n === 0 ? soon : LATER });
  await t.throwsAsync(revocations.add({ jti: 'more', expires: LATER }), { code: 'tooManyRevocations' });
  await delay(60_000);
  await revocations.add({ jti: 'more', expires: LATER });
  t.is(revocations.list().length, 1000);
});
