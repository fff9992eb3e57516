import test from 'ava';
import type { Connection } from '../../../cluster/redis/connection.ts';
import { createLeasing } from '../../../cluster/redis/leases/leasing.ts';
import type { RedisLease } from '../../../cluster/redis/leases/lease.ts';
import { SCRIPTS } from '../../../cluster/redis/scripts.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import type { ClaimOptions } from '../../../cluster/types.ts';
import { until } from '../../support/time/until.ts';

type Script = keyof typeof SCRIPTS;
type Args = readonly (string | number)[];
type Reply = (args: Args) => unknown;

const CONTINUE: ClaimOptions = { silence: 'continue', keepMs: 1000 };
const LOSS_TAG = '1:run:0:';
const OTHER_STATE = '1:other:0:';
const recordOf = (fence: number, token: string, node = 'other'): string =>
  `${fence} ${token} ${node} life-of-${node} continue 0 null`;

/** Leases of a node, and a Redis that answers scripts as the test says. */
function open() {
  let fence = 10;
  let promised = -Infinity;
  const replies: Partial<Record<Script, Reply>> = {};
  const usual: Partial<Record<Script, Reply>> = {
    claim: () => ['lease', String(++fence), ''],
    confirm: (args) => args.slice(1).flatMap((_, at) => (at % 2 === 0 ? [1] : [])),
    values: (args) => args.flatMap((_, at) => (at % 4 === 0 ? [1] : [])),
    release: () => 1,
  };
  const ran: { readonly name: Script; readonly args: Args }[] = [];
  const connection = {
    run: async (script: unknown, args: Args): Promise<unknown> => {
      const [name] = Object.entries(SCRIPTS).find(([, known]) => known === script) as [Script, unknown];
      ran.push({ name, args });
      return await (replies[name] ?? usual[name])?.(args);
    },
  } as unknown as Connection;
  const leasing = createLeasing({
    self: { id: 'own', incarnation: 'life-of-own' },
    connection,
    timing: timingOf({ ttl: 60_000 }),
    latest: () => undefined,
    promisedUntil: () => promised,
  });
  let tokens = 0;
  const claim = (key: string, options: Partial<ClaimOptions> = {}) =>
    leasing.claims.claim(key, `token-${++tokens}`, null, { ...CONTINUE, ...options });
  return {
    ...leasing,
    replies,
    ran,
    claim,
    /** @throws where the key is another's */
    async held(key: string, options: Partial<ClaimOptions> = {}): Promise<RedisLease> {
      const claimed = await claim(key, options);
      if (claimed === undefined || !('lease' in claimed)) throw new Error(`${key} is not held`);
      return claimed.lease as RedisLease;
    },
    beat: (lossTag = LOSS_TAG, replaced = false) =>
      leasing.renewal.expectBeat()({ sentAt: performance.now(), lossTag, replaced }),
    promise: (until = performance.now() + 60_000) => (promised = until),
    /** Tokens of claims that Redis was asked to delete. */
    deleted: (): (string | number)[] =>
      ran.flatMap(({ name, args }) => (name === 'release' ? args.filter((_, at) => at % 2 === 1) : [])),
  };
}

/** Has Redis lose the claims that this node holds. */
const lost: Reply = (args) => args.slice(1).flatMap((_, at) => (at % 2 === 0 ? [0] : []));

test('a claim granted after this node has promised others to claim nothing is not held, and deleted', async (t) => {
  const { replies, claim, promise, deleted, beat } = open();
  replies.claim = () => {
    promise();
    return ['lease', '11', ''];
  };
  t.is(await claim('k'), undefined);
  await beat();
  t.deepEqual(deleted(), ['token-1']);
});

test('a beat says whether claims are still to be restored: valid ones, others, none', async (t) => {
  const { renewal, replies, held, beat } = open();
  const lease = await held('k');
  await beat();
  t.is(renewal.restored, 2);
  replies.confirm = lost;
  replies.claim = () => ['wait'];
  await beat(OTHER_STATE);
  t.is(renewal.restored, 0);
  t.true(lease.valid);
  delete replies.claim;
  await beat(OTHER_STATE);
  t.is(renewal.restored, 2);
  t.is(lease.fence, 12);
});

test('a claim made without Redis is made there with the first beat that is answered', async (t) => {
  const { claims, renewal, replies, ran, beat } = open();
  claims.holdUnconfirmed('k', 'token', null, CONTINUE);
  replies.confirm = lost;
  await beat();
  const [claimed] = ran.filter(({ name }) => name === 'claim');
  t.is(claimed?.args[9], 'none', 'Redis has never had it');
  t.is(renewal.restored, 2);
});

test('a node restores only valid claims while it keeps a promise', async (t) => {
  const { claims, replies, ran, held, beat, promise } = open();
  const valid = await held('valid');
  const unconfirmed = claims.holdUnconfirmed('k', 'token', null, CONTINUE);
  await beat();
  t.true(unconfirmed.valid);
  const other = claims.holdUnconfirmed('other', 'other', null, CONTINUE);
  promise();
  replies.confirm = lost;
  const before = ran.length;
  await beat(OTHER_STATE);
  const claimed = ran.slice(before).flatMap(({ name, args }) => (name === 'claim' ? [args[0]] : []));
  t.deepEqual(claimed, ['valid', 'k']);
  t.true(valid.valid);
  t.false(other.valid);
  t.false(other.ended);
});

test('a promise given while a claim is restored leaves it to a later beat', async (t) => {
  const { claims, replies, beat, promise } = open();
  const lease = claims.holdUnconfirmed('k', 'token', null, CONTINUE);
  replies.confirm = lost;
  replies.claim = () => {
    promise();
    return ['lease', '11', ''];
  };
  await beat();
  t.false(lease.valid);
  t.false(lease.ended);
  promise(-Infinity);
  replies.claim = () => ['lease', '12', ''];
  await beat();
  t.true(lease.valid);
  t.is(lease.fence, 12);
});

test('a lease of a key that another node has by now is lost, unless that claim is an earlier one', async (t) => {
  const { renewal, replies, held, beat } = open();
  const [taken, kept] = [await held('taken'), await held('kept')];
  replies.confirm = () => [recordOf(99, 'later'), recordOf(1, 'earlier')];
  replies.claim = () => ['owner', recordOf(1, 'earlier')];
  await beat(OTHER_STATE);
  t.true(taken.signal.aborted);
  t.false(kept.ended);
  t.is(renewal.restored, 0);
  replies.claim = () => ['owner', recordOf(99, 'later')];
  replies.confirm = lost;
  await beat(OTHER_STATE);
  t.true(kept.signal.aborted);
});

test('a lease released while Redis is asked for it is not restored, and deleted once more', async (t) => {
  const { replies, held, beat, deleted } = open();
  const [found, restored] = [await held('found'), await held('restored')];
  await beat();
  replies.confirm = async (args) => {
    await found.release();
    return lost(args);
  };
  replies.claim = async () => {
    await restored.release();
    return ['lease', '99', ''];
  };
  await beat(OTHER_STATE);
  await until('it is deleted', () => deleted().filter((token) => token === 'token-2').length === 2);
  t.is(deleted().filter((token) => token === 'token-1').length, 1);
});

test('a value that Redis lacks is written with a beat; where it lacks the claim, that is restored with the next', async (t) => {
  const { renewal, replies, held, beat } = open();
  const [written, missing, taken] = [await held('written'), await held('missing'), await held('taken')];
  await beat();
  replies.values = () => Promise.reject(new Error('away'));
  for (const lease of [written, missing, taken]) await t.throwsAsync(lease.update('changed'));
  replies.values = () => [1, 0, recordOf(99, 'later')];
  await beat();
  t.is(written.pending, undefined);
  t.deepEqual(missing.pending, { meta: 'changed', kept: undefined });
  t.true(taken.signal.aborted);
  t.is(renewal.restored, 0);
  replies.confirm = lost;
  delete replies.values;
  await beat();
  t.is(renewal.restored, 2);
  await beat();
  t.is(missing.pending, undefined);
});

test('the later claim counts of two nodes without Redis that hold one key', async (t) => {
  const { claims, leases, held } = open();
  const [earlier, later] = [await held('earlier'), await held('later')];
  const unconfirmed = claims.holdUnconfirmed('unconfirmed', 'token', null, CONTINUE);
  const other = { id: 'other', incarnation: 'life' };
  const asked = [
    ['earlier', 99],
    ['later', 1],
    ['unconfirmed', 99],
    ['not held', 1],
  ] as const;
  t.deepEqual(leases.laterClaims(asked, other), ['later']);
  t.true(earlier.signal.aborted);
  t.false(later.ended);
  t.false(unconfirmed.ended);
  t.deepEqual(leases.held(), [['later', 12]]);
});

test('valid leases without Redis go on by the promises of others, but for keys with later claims', async (t) => {
  const { claims, leases, held } = open();
  const [kept, taken] = [await held('kept'), await held('taken')];
  const unconfirmed = claims.holdUnconfirmed('k', 'token', null, CONTINUE);
  t.true(leases.atStake);
  const { validUntil } = kept;
  leases.extendAll(performance.now() + 1000, new Set(['taken']));
  t.true(kept.validUntil > validUntil);
  t.true(taken.signal.aborted);
  t.false(unconfirmed.valid);
});

test('a key taken from a lease of the same node begins at once', async (t) => {
  const { replies, held } = open();
  const former = await held('k');
  replies.claim = () => ['lease', '11', '', former.token, '60000'];
  const lease = await held('k', { take: true });
  t.true(former.signal.aborted);
  t.true(lease.valid);
});

test('a key taken from a lease that has not begun itself begins when that one is known to have ended', async (t) => {
  const { handOver, leases, replies, held, deleted } = open();
  replies.claim = () => ['lease', '11', '', 'of-another-node', '60000'];
  const first = held('k', { take: true });
  await until('it is held', () => leases.holds('k'));
  replies.claim = () => ['lease', '12', '', 'token-1', '60000'];
  let isHeld = false;
  const second = held('k', { take: true }).then((lease) => {
    isHeld = true;
    return lease;
  });
  handOver.stopped('of-another-node');
  t.true((await first).signal.aborted, 'it was taken before it began');
  await until('it is deleted', () => deleted().includes('token-1'));
  t.false(isHeld);
  handOver.stopped('token-1');
  t.true((await second).valid);
});

test('a node that lost its claims loses every lease, and Redis is asked to delete them', async (t) => {
  const { leases, held, deleted } = open();
  const lease = await held('k');
  leases.loseAll();
  t.true(lease.signal.aborted);
  t.is(leases.size, 0);
  await until('it is deleted', () => deleted().includes('token-1'));
});

test('a node whose id another process uses renews nothing', async (t) => {
  const { held, beat } = open();
  const lease = await held('k');
  const { validUntil } = lease;
  await beat(LOSS_TAG, true);
  t.is(lease.validUntil, validUntil);
  await beat();
  t.true(lease.validUntil > validUntil);
});

test('a claim of this node that it does not know is deleted', async (t) => {
  const { leases, deleted } = open();
  leases.observe('k', {
    token: 'forgotten',
    owner: { id: 'own', incarnation: 'life-of-own', fence: 5, meta: null },
  });
  await until('it is deleted', () => deleted().includes('forgotten'));
  t.is(leases.highest, 5);
});
