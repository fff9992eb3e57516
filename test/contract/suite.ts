import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import {
  ConflictError,
  LostError,
  NoNodeError,
  UnreachableError,
  type Claim,
  type Cluster,
  type Lease,
  type NodeRecord,
  type Owner,
} from '#cluster';
import { mirrored } from '../support/cluster/cluster.ts';
import { until } from '../support/time/until.ts';

/** Opens so many clients of one cluster: different nodes, or one node several times where there is only one. */
export type Open = (t: ExecutionContext, count: number) => Promise<Cluster[]>;

const STOP = { silence: 'stop' } as const;

function leaseOf(claim: Claim): Lease {
  if ('owner' in claim) throw new Error(`held by ${claim.owner.id}`);
  return claim.lease;
}

const leases = (claims: readonly Claim[]): Lease[] =>
  claims.flatMap((claim) => ('lease' in claim ? [claim.lease] : []));

/** Does what needs a lock, also when that is held by others for longer than a caller waits. */
async function untilFree<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ConflictError) || !error.message.endsWith('is locked by others')) throw error;
    }
  }
}

const pause = (most: number): Promise<void> => delay(Math.random() * most);

/** All records of the cluster. */
async function recordsOf(node: Cluster): Promise<NodeRecord[]> {
  const records: NodeRecord[] = [];
  for await (const page of node.records.pages()) records.push(...page);
  return records;
}

/** What every implementation of the seam has to do. */
export function contract(name: string, open: Open): void {
  const clause = (
    title: string,
    count: number,
    run: (t: ExecutionContext, clients: Cluster[]) => Promise<void>,
  ): void => {
    test(`${name}: ${title}`, async (t) => run(t, await open(t, count)));
  };

  clause('of many that claim a key at once one gets it, and the others learn its owner', 5, async (t, clients) => {
    for (let round = 0; round < 10; round++) {
      const claims = await Promise.all(
        clients.map(async (client) => {
          await pause(5);
          return client.claim(`k/${round}`, { by: client.self.id }, STOP);
        }),
      );
      const [lease, ...more] = leases(claims);
      t.true(lease?.valid);
      t.is(more.length, 0);
      for (const claim of claims) if ('owner' in claim) t.like(claim.owner, { fence: lease?.fence, meta: lease?.meta });
    }
  });

  clause('a key that is released is free, and every next fence is greater', 3, async (t, clients) => {
    let last = 0;
    for (let round = 0; round < 12; round++) {
      const lease = leaseOf(await (clients[round % 3] as Cluster).claim('k', round, STOP));
      t.true(lease.fence > last);
      last = lease.fence;
      await lease.release();
      await lease.release();
      t.false(lease.valid);
      t.false(lease.signal.aborted);
    }
    t.is(await clients[0]?.ownerOf('k'), undefined);
  });

  clause('taking over a key ends the lease of its former holder', 2, async (t, [a, b]) => {
    const old = leaseOf(await (a as Cluster).claim('k', 'old', STOP));
    const lost = new Promise((resolve) => old.signal.addEventListener('abort', resolve));
    const taken = leaseOf(await (b as Cluster).claim('k', 'new', { ...STOP, take: true }));
    await lost;
    t.true(taken.fence > old.fence);
    t.true(old.signal.reason instanceof LostError);
    t.is((old.signal.reason as LostError).owner?.fence, taken.fence);
    t.false(old.valid);
    await t.throwsAsync(old.update('more'), { instanceOf: LostError });
    await old.release();
    t.is((await (a as Cluster).ownerOf('k'))?.fence, taken.fence);
    t.true(taken.valid);
  });

  clause('a key is taken from the owner that is named, and from no later one', 3, async (t, [a, b, c]) => {
    const old = leaseOf(await (a as Cluster).claim('k', 'old', STOP));
    const seen = await (b as Cluster).ownerOf('k');
    const claims = await Promise.all(
      [b, c].map((client) => (client as Cluster).claim('k', 'new', { ...STOP, take: seen as Owner })),
    );
    const [lease, ...more] = leases(claims);
    t.true(lease?.valid);
    t.is(more.length, 0);
    for (const claim of claims) if ('owner' in claim) t.is(claim.owner.fence, lease?.fence ?? 0);
    await until('its owner has lost it', () => old.signal.aborted);
    const late = await (a as Cluster).claim('k', 'late', { ...STOP, take: seen as Owner });
    t.like(late, { owner: { fence: lease?.fence } });
    await lease?.release();
    t.true(leaseOf(await (a as Cluster).claim('k', 'free', { ...STOP, take: seen as Owner })).valid);
  });

  clause('meta is seen everywhere as soon as it is written', 2, async (t, [a, b]) => {
    const lease = leaseOf(await (a as Cluster).claim('k', { next: 1 }, STOP));
    await lease.update({ next: 2, text: 'ü "quoted" \n line' });
    t.deepEqual((await (b as Cluster).ownerOf('k'))?.meta, { next: 2, text: 'ü "quoted" \n line' });
  });

  clause(
    'a value that a holder keeps is for the next, until that one keeps another; watchers are not notified of it',
    2,
    async (t, [a, b]) => {
      const keeping = { ...STOP, keepMs: 60_000 };
      const { calls } = mirrored(b as Cluster, 'k');
      const first = leaseOf(await (a as Cluster).claim('k', 'meta', keeping));
      t.is(first.inherited, undefined);
      await until('it is told', () => calls.flat().length === 1);
      await first.keep({ next: 1 });
      await first.keep({ next: 2, text: 'ü "quoted" \n line' });
      t.is((await (b as Cluster).ownerOf('k'))?.meta, 'meta');
      await first.release();
      const holders = [];
      for (const [index, client] of [b, a, b].entries()) {
        const lease = leaseOf(await (client as Cluster).claim('k', { empty: index }, keeping));
        holders.push(lease.inherited);
        await lease.update('changed');
        await lease.release();
      }
      t.deepEqual(
        holders,
        Array.from({ length: 3 }, () => ({ next: 2, text: 'ü "quoted" \n line' })),
      );
      await until('all are told', () => calls.flat().at(-1)?.owner === undefined);
      t.true(calls.flat().every(({ owner }) => !JSON.stringify(owner ?? null).includes('next')));
      const taken = leaseOf(await (a as Cluster).claim('k', null, keeping));
      await taken.keep('of the last');
      const taking = leaseOf(await (b as Cluster).claim('k', null, { ...keeping, take: true }));
      t.is(taking.inherited, 'of the last');
      await t.throwsAsync(taken.keep('too late'), { instanceOf: LostError });
      await taking.release();
      t.is(leaseOf(await (a as Cluster).claim('k', null, keeping)).inherited, 'of the last');
    },
  );

  clause(
    'a value that a holder keeps right before it changes or releases the claim is for the next',
    2,
    async (t, [a, b]) => {
      const keeping = { ...STOP, keepMs: 60_000 };
      for (const changes of [false, true]) {
        const lease = leaseOf(await (a as Cluster).claim('k', null, keeping));
        // what comes of the call itself does not matter: it may be over after the claim
        const kept = lease.keep(`of the last: ${changes}`).catch(() => undefined);
        if (changes) await lease.update('changed');
        await lease.release();
        await kept;
        const next = leaseOf(await (b as Cluster).claim('k', null, keeping));
        t.is(next.inherited, `of the last: ${changes}`);
        await next.release();
      }
    },
  );

  clause('a value kept by a holder whose claim was taken over does not bring the claim back', 2, async (t, [a, b]) => {
    const keeping = { ...STOP, keepMs: 60_000 };
    const first = leaseOf(await (a as Cluster).claim('k', null, keeping));
    // it may come before the claim is taken, or fail
    const kept = first.keep('late').catch(() => undefined);
    const taking = leaseOf(await (b as Cluster).claim('k', null, { ...keeping, take: true }));
    await taking.release();
    await kept;
    t.is(await (b as Cluster).ownerOf('k'), undefined);
    await until('nobody has it', async () => (await (a as Cluster).ownerOf('k')) === undefined);
  });

  clause('a kept value is gone when its time is over, and at once where none was asked for', 2, async (t, [a, b]) => {
    const plain = leaseOf(await (a as Cluster).claim('plain', null, STOP));
    await plain.keep('not kept');
    await plain.release();
    t.is(leaseOf(await (b as Cluster).claim('plain', null, STOP)).inherited, undefined);
    const short = leaseOf(await (a as Cluster).claim('short', null, { ...STOP, keepMs: 20 }));
    await short.keep('for a while');
    await short.release();
    await until('forgotten', async () => {
      await delay(40);
      const next = leaseOf(await (b as Cluster).claim('short', null, STOP));
      await next.release();
      return next.inherited === undefined;
    });
  });

  clause('lists are of a path, by names and not by letters', 2, async (t, [a, b]) => {
    for (const key of ['s/v/app/one', 's/v/app/two', 's/v/apples/one', 's/v', 't/v/app/one'])
      await (a as Cluster).claim(key, key, STOP);
    t.deepEqual([...(await (b as Cluster).list('s/v/app')).keys()].sort(), ['s/v/app/one', 's/v/app/two']);
    t.is((await (b as Cluster).list('s')).size, 4);
    t.is((await (b as Cluster).list('')).size, 5);
    for (const [key, owner] of await (b as Cluster).list('')) t.is(owner.meta, key);
  });

  clause('a watcher of a path is notified of every claim that exists and every change', 3, async (t, [a, b, c]) => {
    await (a as Cluster).claim('w/before', 0, STOP);
    await (b as Cluster).list('');
    const { owners, calls, undo } = mirrored(b as Cluster, 'w');
    await until('what is there', () => owners.has('w/before'));
    const held = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        await pause(30);
        return leaseOf(await ((n % 2 === 0 ? a : c) as Cluster).claim(`w/${n}`, n, STOP));
      }),
    );
    await Promise.all(held.map(async (lease, n) => (n % 4 === 0 ? lease.release() : lease.update(-n))));
    await (a as Cluster).claim('elsewhere', 1, STOP);
    const expected = await (a as Cluster).list('w');
    const text = (list: ReadonlyMap<string, Owner>): string => JSON.stringify([...list].sort());
    t.is(expected.size, 31);
    await until('the same as in the list', () => text(owners) === text(expected));
    t.true(calls.length < 80, `many changes come together: ${calls.length} calls`);
    t.false(calls.flat().some(({ key }) => key === 'elsewhere'));
    undo();
    const count = calls.length;
    await (a as Cluster).claim('w/after', 0, STOP);
    t.true((await (b as Cluster).list('w')).has('w/after'));
    await new Promise(setImmediate);
    t.is(calls.length, count);
  });

  clause('an entry that was written on one node is there on every other after sync', 3, async (t, clients) => {
    const [a, b] = clients as [Cluster, Cluster, Cluster];
    for (let n = 1; n <= 15; n++) {
      const writer = clients[n % 3] as Cluster;
      await writer.config.sync();
      await writer.config.write([{ key: 'n', value: n, seen: writer.config.entries().get('n')?.revision ?? 0 }]);
      const reader = clients[(n + 1) % 3] as Cluster;
      await reader.config.sync();
      t.is(reader.config.entries().get('n')?.value, n);
    }
    await a.config.sync();
    await a.config.write([{ key: 'n', seen: a.config.entries().get('n')?.revision ?? 0 }]);
    await b.config.sync();
    t.false(b.config.entries().has('n'));
    t.false(b.config.stale);
  });

  clause('values come back as they were, of whatever form', 2, async (t, [a, b]) => {
    const values = [{ empty: [], none: {}, list: [1, null, [], {}] }, 0.1, 'a b\n"c" ü', 2 ** 53 - 1, true, null, ''];
    await (a as Cluster).config.write(values.map((value, n) => ({ key: `v/${n}`, value, seen: 0 })));
    await (b as Cluster).config.sync();
    values.forEach((value, n) => t.deepEqual((b as Cluster).config.entries().get(`v/${n}`)?.value, value));
  });

  clause('the removal of an entry that does not exist is announced', 2, async (t, [a, b]) => {
    const heard: string[] = [];
    await (a as Cluster).config.write([{ key: 'vhost', value: 1, seen: 0 }]);
    await (b as Cluster).config.sync();
    (b as Cluster).config.listen((keys) => void heard.push(...keys));
    await (a as Cluster).config.write([{ key: 'vhost/none', seen: 0 }]);
    await (b as Cluster).config.sync();
    t.deepEqual(heard, ['vhost/none']);
    await t.throwsAsync((a as Cluster).config.write([{ key: 'vhost/none', seen: 3 }]), { instanceOf: ConflictError });
  });

  clause('of concurrent creations of one name exactly one succeeds', 5, async (t, clients) => {
    for (let round = 0; round < 5; round++) {
      const results = await Promise.allSettled(
        clients.flatMap((client) =>
          [1, 2].map(async () => {
            await pause(5);
            await client.config.write([
              { key: `name/${round}`, value: client.self.id, seen: 0 },
              { key: `x/${round}`, value: 1, seen: 0 },
            ]);
          }),
        ),
      );
      t.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
      t.true(results.every((result) => result.status === 'fulfilled' || result.reason instanceof ConflictError));
    }
  });

  clause('a write makes all its changes or none; removing takes along what is below', 2, async (t, [a, b]) => {
    const { config } = a as Cluster;
    await config.write(['v', 'v/a', 'v/a/b', 'vv'].map((key) => ({ key, value: key, seen: 0 })));
    await t.throwsAsync(
      config.write([
        { key: 'new', value: 1, seen: 0 },
        { key: 'v', value: 1, seen: 0 },
      ]),
      { instanceOf: ConflictError },
    );
    await config.write([{ key: 'v', seen: config.entries().get('v')?.revision ?? 0 }]);
    await (b as Cluster).config.sync();
    t.deepEqual([...(b as Cluster).config.entries().keys()], ['vv']);
  });

  clause('changes of one write are made in their order, many removals at once as one by one', 2, async (t, [a, b]) => {
    const { config } = a as Cluster;
    const [reader, made] = [(b as Cluster).config, (key: string) => ({ key, value: 'made', seen: 0 })];
    await config.write([made('v'), made('v/old'), made('w'), made('other'), made('%23/x')]);
    const seen = (key: string): number => config.entries().get(key)?.revision ?? 0;
    await config.write([
      made('v/early'),
      made('u/early'),
      { key: 'v', seen: seen('v') },
      { key: 'u', seen: 0 },
      made('v/late'),
      { key: 'w', seen: seen('w') },
    ]);
    await reader.sync();
    t.deepEqual([...reader.entries().keys()].sort(), ['%23/x', 'other', 'v/late']);
    const many = Array.from({ length: 3000 }, (_, n) => `%23/x/${n}`);
    await config.write(many.map(made));
    await config.write(many.slice(1).map((key) => ({ key, seen: seen(key) })));
    await reader.sync();
    t.deepEqual([...reader.entries().keys()].sort(), ['%23/x', '%23/x/0', 'other', 'v/late']);
  });

  clause("listeners hear of every change, their own node's too, and sync waits for them", 2, async (t, [a, b]) => {
    const heard: string[] = [];
    const undo = (b as Cluster).config.listen(async (keys) => {
      await delay(20);
      heard.push(...keys);
    });
    await (a as Cluster).config.write([
      { key: 'one', value: 1, seen: 0 },
      { key: 'one/a', value: 1, seen: 0 },
    ]);
    await (b as Cluster).config.sync();
    t.deepEqual(heard.splice(0).sort(), ['one', 'one/a']);
    const { config } = b as Cluster;
    await config.write([{ key: 'one', seen: config.entries().get('one')?.revision ?? 0 }]);
    await config.sync();
    t.deepEqual(heard.splice(0).sort(), ['one', 'one/a']);
    undo();
    await (a as Cluster).config.write([{ key: 'two', value: 1, seen: 0 }]);
    await config.sync();
    t.deepEqual(heard, []);
  });

  clause(
    'a write is made only when what it relies on is as it was seen, which stays as it is',
    2,
    async (t, [a, b]) => {
      const { config } = a as Cluster;
      await config.write([{ key: 'v', value: 'parent', seen: 0 }]);
      const seen = config.entries().get('v')?.revision ?? 0;
      const heard: string[] = [];
      config.listen((keys) => void heard.push(...keys));
      await config.write([{ key: 'v/a', value: 1, seen: 0 }], [{ key: 'v', seen }]);
      await config.sync();
      t.deepEqual(heard, ['v/a']);
      t.is(config.entries().get('v')?.revision, seen);
      const other = (b as Cluster).config;
      await other.sync();
      await other.write([{ key: 'v', seen }]);
      await t.throwsAsync(config.write([{ key: 'v/b', value: 1, seen: 0 }], [{ key: 'v', seen }]), {
        instanceOf: ConflictError,
      });
      await config.write([{ key: 'w', value: 1, seen: 0 }], [{ key: 'v', seen: 0 }]);
      t.deepEqual([...config.entries().keys()], ['w']);
    },
  );

  clause('a client that has seen a position of another node has every entry that it had', 2, async (t, [a, b]) => {
    const [one, other] = [(a as Cluster).config, (b as Cluster).config];
    for (let n = 0; n < 20; n++) {
      await one.write([{ key: `k/${n}`, value: n, seen: 0 }]);
      await other.sync(one.position);
      t.is(other.entries().get(`k/${n}`)?.value, n);
      t.is(other.position, one.position);
    }
    await other.sync('of another life');
    t.is(other.position, one.position);
  });

  clause('a lock is for one at a time, and goes on to the next also when the step fails', 4, async (t, clients) => {
    let inside = 0;
    let most = 0;
    let failed = 0;
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        await (clients[n % 4] as Cluster)
          .withLock('step', async () => {
            most = Math.max(most, ++inside);
            await pause(10);
            inside -= 1;
            if (n % 3 === 0) throw new RangeError('of the step');
          })
          .catch((error: Error) => {
            t.true(error instanceof RangeError, error.message);
            failed += 1;
          });
      }),
    );
    t.is(most, 1);
    t.is(failed, 4);
    t.is(await (clients[0] as Cluster).withLock('other', async () => 'result'), 'result');
  });

  clause('under a lock, reading and writing on what was read never conflicts', 4, async (t, clients) => {
    // a new store may take its time until anybody may write, which is none of the lock's
    await (clients[0] as Cluster).config.write([{ key: 'first', value: 1, seen: 0 }]);
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const client = clients[n % 4] as Cluster;
        const { config } = client;
        const add = async () => {
          await config.sync();
          const entry = config.entries().get('sum');
          await config.write([{ key: 'sum', value: Number(entry?.value ?? 0) + 1, seen: entry?.revision ?? 0 }]);
        };
        // the wait for a lock is limited: on a slow machine eleven others may take longer
        await untilFree(() => client.withLock('config', add));
      }),
    );
    await (clients[0] as Cluster).config.sync();
    t.is((clients[0] as Cluster).config.entries().get('sum')?.value, 12);
  });

  clause(
    'statistics: counters add up, gauges are what is, maxima are of the sum, the latest event counts',
    1,
    async (t, [a]) => {
      const row = (bytes: number, viewers: number, at: number) => ({
        key: 's',
        counters: { bytes },
        gauges: { viewers },
        latest: { at },
      });
      const sum = async () => (await (a as Cluster).stats(['s', 'none'])).get('s');
      const begun = Date.now();
      const own = (bytes: number, viewers: number) => ({ counters: { bytes }, gauges: { viewers } });
      const reported = (bytes: number, viewers: number, at: number, total = bytes) => ({
        ...own(total, viewers),
        maxima,
        maximaTimes,
        latest: { at },
        own: own(bytes, viewers),
        others: [],
      });
      t.is(await sum(), undefined);
      // a store that does not know the node yet counts nothing of it
      const first = await until('it is counted', async () => {
        await (a as Cluster).reportStats([row(100, 5, 10)]);
        return await sum();
      });
      const maximaTimes = first.maximaTimes as { viewers: number };
      const maxima = { viewers: 5 };
      t.true(maximaTimes.viewers >= begun - 1 && maximaTimes.viewers <= Date.now() + 1);
      t.deepEqual(first, reported(100, 5, 10));
      await (a as Cluster).reportStats([row(250, 2, 7)]);
      t.deepEqual(await sum(), reported(250, 2, 10));
      await (a as Cluster).reportStats([]);
      t.deepEqual(await sum(), {
        counters: { bytes: 250 },
        gauges: {},
        maxima,
        maximaTimes,
        latest: { at: 10 },
        own: { counters: {}, gauges: {} },
        others: [],
      });
      await (a as Cluster).reportStats([row(30, 1, 11)]);
      t.deepEqual(await sum(), reported(30, 1, 11, 280));
      await (a as Cluster).reportStats([row(10, 1, 11)]);
      t.is((await sum())?.counters.bytes, 290, 'a counter that fell has begun anew');
    },
  );

  clause('a node says whether a life of another goes on, as far as it can ask it', 2, async (t, [a, b]) => {
    const [asker, { self }] = [a as Cluster, b as Cluster];
    await until('it is known', async () => asker.nodes().some(({ id }) => id === self.id));
    t.is(await asker.lives(self), true);
    t.is(await asker.lives({ ...self, incarnation: 'earlier' }), false);
    t.is(await asker.lives({ id: 'unknown', incarnation: '1' }), undefined);
  });

  clause('nodes know each other, with what they publish of themselves', 2, async (t, [a, b]) => {
    (a as Cluster).describe({ load: 0.25, full: true, info: { version: '1', streams: 3 } });
    const row = await until('what a says', () =>
      (b as Cluster).nodes().find(({ id, load }) => id === (a as Cluster).self.id && load === 0.25),
    );
    t.like(row, { ...(a as Cluster).self, state: 'ready', full: true, info: { version: '1', streams: 3 } });
    t.true(row.silentMs >= 0 && row.uptimeMs >= 0);
  });

  clause('draining is asked for on any node, heard by the one it is about, and can be undone', 2, async (t, [a, b]) => {
    const node = a as Cluster;
    const heard: boolean[] = [];
    node.events.on('drain', (draining) => heard.push(draining));
    await (b as Cluster).drain(node.self.id);
    await until('draining', () => node.draining);
    await until(
      'seen by others',
      () => (b as Cluster).nodes().find(({ id }) => id === node.self.id)?.state === 'draining',
    );
    await (b as Cluster).undrain(node.self.id);
    await until('not draining', () => !node.draining);
    t.deepEqual(heard, [true, false]);
    await t.throwsAsync((b as Cluster).drain('nobody'), { instanceOf: NoNodeError });
  });

  clause('an event reports that nodes change their description, or drain', 2, async (t, [a, b]) => {
    const [node, other] = [a as Cluster, b as Cluster];
    const row = () => other.nodes().find(({ id }) => id === node.self.id);
    const heard: string[] = [];
    other.events.on('nodes', () => heard.push(`${row()?.full} ${row()?.state}`));
    node.describe({ load: 0, full: true, info: {} });
    await until('it is full', () => heard.includes('true ready'));
    node.describe({ load: 0, full: false, info: {} });
    await until('it has room', () => heard.at(-1) === 'false ready');
    await other.drain(node.self.id);
    await until('it drains', () => heard.at(-1) === 'false draining');
    await other.undrain(node.self.id);
    await until('it does not', () => heard.at(-1) === 'false ready');
    t.is(new Set(heard).size, 3);
  });

  clause('a node that retires drains, and no call can undo it', 2, async (t, [a, b]) => {
    const node = a as Cluster;
    const heard: boolean[] = [];
    node.events.on('drain', (draining) => heard.push(draining));
    const seen = () => (b as Cluster).nodes().find(({ id }) => id === node.self.id)?.state;
    await node.retire();
    await node.retire();
    await until('draining', () => node.draining && seen() === 'draining');
    await (b as Cluster).undrain(node.self.id);
    node.describe({ load: 0.75, full: false, info: {} });
    await until('a report after that', () => (b as Cluster).nodes().some(({ load }) => load === 0.75));
    t.is(seen(), 'draining');
    t.true(node.draining);
    t.deepEqual(heard, [true]);
  });

  clause('a record is finished once, whichever node tries, and never put again', 3, async (t, clients) => {
    const [a, b] = clients as [Cluster, Cluster, Cluster];
    const value = { text: 'ü "quoted" \n line', list: [1, null, {}] };
    t.deepEqual(await a.records.put([{ id: 'one', value }]), [true]);
    if (a !== b) t.deepEqual(await b.records.finish([{ id: 'one', incarnation: b.self.incarnation }]), [undefined]);
    const tries = clients.map((client) => client.records.finish([{ id: 'one', incarnation: a.self.incarnation }]));
    const finished = (await Promise.all(tries)).flat().filter((finish) => finish !== undefined);
    t.deepEqual(finished, [{ value }]);
    t.deepEqual(await b.records.put([{ id: 'one', value }, { id: 'one' }]), [false, false]);
    t.deepEqual(await recordsOf(b), []);
  });

  clause(
    'a record that another node takes is for that one to finish, with the value that it has',
    2,
    async (t, [a, b]) => {
      const [old, taker] = [a as Cluster, b as Cluster];
      await old.records.put([{ id: 'one', value: 'first' }]);
      t.deepEqual(await taker.records.put([{ id: 'one' }]), [true]);
      t.deepEqual(await recordsOf(old), [{ id: 'one', incarnation: taker.self.incarnation, value: 'first' }]);
      await taker.records.put([{ id: 'one', value: 'second' }]);
      if (old !== taker)
        t.deepEqual(await old.records.finish([{ id: 'one', incarnation: old.self.incarnation }]), [undefined]);
      t.deepEqual(await taker.records.finish([{ id: 'one', incarnation: taker.self.incarnation }]), [
        { value: 'second' },
      ]);
    },
  );

  clause('all records are listed, many at once are put and finished', 2, async (t, [a, b]) => {
    const node = a as Cluster;
    const records = Array.from({ length: 450 }, (_, n) => ({ id: `id ${n}`, value: n }));
    t.true((await node.records.put(records)).every(Boolean));
    const listed = await recordsOf(b as Cluster);
    t.deepEqual(new Set(listed.map(({ id }) => id)), new Set(records.map(({ id }) => id)));
    const finished = await node.records.finish(records.map(({ id }) => ({ id, incarnation: node.self.incarnation })));
    t.deepEqual(
      finished,
      records.map(({ value }) => ({ value })),
    );
    t.deepEqual(await recordsOf(b as Cluster), []);
  });

  clause('of a record that is not there the node finishes its own only', 1, async (t, [a]) => {
    const node = a as Cluster;
    t.deepEqual(await node.records.finish([{ id: 'lost', incarnation: 'of another' }]), [undefined]);
    t.deepEqual(await node.records.finish([{ id: 'lost', incarnation: node.self.incarnation }]), [
      { value: undefined },
    ]);
    t.deepEqual(await node.records.put([{ id: 'lost', value: 1 }, { id: 'unknown' }]), [false, true]);
    t.deepEqual(await recordsOf(node), []);
  });

  clause('a call to a node that is not there never reached it', 1, async (t, [a]) => {
    const request = { method: 'GET', path: '/', headers: {}, body: Buffer.alloc(0) };
    await t.throwsAsync((a as Cluster).forward({ id: 'nobody', incarnation: '1' }, request, 1000), {
      instanceOf: UnreachableError,
    });
  });

  clause('closing releases what is held, and can be done twice', 2, async (t, [a, b]) => {
    const lease = leaseOf(await (a as Cluster).claim('k', 1, STOP));
    if (a !== b) t.is((await (b as Cluster).ownerOf('k'))?.id, a?.self.id);
    await a?.close();
    await a?.close();
    t.false(lease.valid);
    if (a !== b) t.is(await (b as Cluster).ownerOf('k'), undefined);
  });
}
