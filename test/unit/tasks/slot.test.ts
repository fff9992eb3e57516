import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { UnavailableError, type Claim, type Cluster, type Owner } from '#cluster';
import { Registry } from '../../../src/core/registry.ts';
import { Limiter } from '../../../src/lib/limiter.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { TaskCounts } from '../../../src/tasks/counts.ts';
import type { TaskDefinition } from '../../../src/tasks/definition.ts';
import { TaskDefinitions } from '../../../src/tasks/definitions.ts';
import { TaskSlot } from '../../../src/tasks/slot.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { FakeLease, HeldKind, HeldStreamKind, publishLive } from '../../support/tasks/held-task.ts';
import { addVhost } from '../../support/server/live.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const NAME = { kind: 'held', vhost: 'default', app: 'app', id: 'one' };
const DEFINITION: TaskDefinition = { spec: null, persistent: true, stored: false, uid: 'u' };
const OTHER = { id: 'b', incarnation: 'b1', fence: 5, meta: null } as unknown as Owner;

/** A claim that waits for the test, which grants or refuses it. */
interface HeldClaim extends PromiseWithResolvers<Claim> {
  readonly at: number;
}

/** A slot of one task whose claims the test answers, with a stored definition unless `isDefined` is false. */
async function open<K extends HeldKind | HeldStreamKind>(t: ExecutionContext, kind: K, isDefined = true) {
  virtualTime(t);
  const alone = await openAlone();
  const registry = new Registry();
  addVhost(registry);
  const claims: HeldClaim[] = [];
  const cluster: Cluster = new Proxy(alone, {
    get: (target, key) => {
      if (key === 'claim') {
        return () => {
          const claim = { ...Promise.withResolvers<Claim>(), at: performance.now() };
          claims.push(claim);
          return claim.promise;
        };
      }
      const value = Reflect.get(target, key, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const definitions = new TaskDefinitions(alone.config);
  if (isDefined) await definitions.create(NAME, DEFINITION);
  const log = pino({ level: 'silent' });
  const looks: boolean[] = [];
  const turns = new Limiter(1);
  let empty = 0;
  const slot = new TaskSlot(NAME, {
    cluster,
    registry,
    definitions,
    counts: new TaskCounts().of(kind.name),
    kind,
    calls: new PeerCalls(alone, log),
    turns,
    handOvers: new Limiter(1),
    moves: new Limiter(1),
    log,
    onLook: (_, isOpen) => looks.push(isOpen),
    onLast: () => {},
    onEmpty: () => void (empty += 1),
  });
  t.teardown(async () => {
    await slot.close();
    await alone.close();
  });
  const grant = async (n: number, lease = new FakeLease(n + 1)): Promise<FakeLease> => {
    const claim = await until('it is being claimed', () => claims[n]);
    claim.resolve({ lease });
    return lease;
  };
  const timesEmpty = (): number => empty;
  return { slot, kind, registry, definitions, claims, looks, grant, timesEmpty, turns, cluster: alone };
}

const self = ({ cluster }: { cluster: Cluster }, fence: number) => ({ ...cluster.self, fence, meta: null }) as Owner;
const away = () => new UnavailableError('the store is away');

/** Time goes by in which a claim would be made. */
async function linger(): Promise<void> {
  const end = performance.now() + 5000;
  await until('time goes by', () => performance.now() > end);
}

test('a task without an owner is claimed, run, and claimed again after its run was lost', async (t) => {
  const { slot, kind, claims, looks, grant } = await open(t, new HeldKind());
  slot.consider();
  t.true(looks.at(-1));
  const lease = await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  t.is(slot.runner?.isRunning, true);
  lease.lose();
  await slot.over;
  await grant(1);
  await until('it runs again', () => kind.runs.length === 2);
  t.is(claims.length, 2);
});

test('an owner elsewhere ends the wait for a claim; when it is gone the task is claimed', async (t) => {
  const { slot, claims, looks, grant, kind } = await open(t, new HeldKind());
  slot.setOwner(OTHER);
  t.false(looks.at(-1));
  await linger();
  t.is(claims.length, 0);
  t.is(slot.owner, OTHER);
  slot.setOwner(undefined);
  await grant(0);
  await until('it runs', () => kind.runs.length === 1);
});

test('a claim that fails, or that another node has won, is made again after a pause', async (t) => {
  const { slot, claims, grant, kind } = await open(t, new HeldKind());
  slot.consider();
  (await until('it is being claimed', () => claims[0])).reject(away());
  await setImmediate();
  slot.consider();
  t.is(claims.length, 1, 'not at once');
  (await until('it is claimed again', () => claims[1])).resolve({ owner: OTHER });
  await grant(2);
  await until('it runs', () => kind.runs.length === 1);
});

test('a wait for an owner that may come back does not begin anew with a claim that fails', async (t) => {
  const { slot, claims } = await open(t, new HeldStreamKind());
  slot.setOwner(OTHER);
  const begun = performance.now();
  slot.setOwner(undefined);
  const first = await until('its progress is to be rescued', () => claims[0]);
  first.reject(away());
  const second = await until('it is claimed again', () => claims[1]);
  t.true(second.at - first.at < first.at - begun);
  second.reject(away());
});

test('a task that is being claimed is not claimed twice, whatever happens', async (t) => {
  const { slot, claims, grant, kind, definitions } = await open(t, new HeldKind());
  slot.consider();
  await until('it is being claimed', () => claims[0]);
  slot.consider();
  slot.setOwner(OTHER);
  slot.setOwner(undefined);
  t.is(await slot.begin(DEFINITION), undefined, 'it cannot be created');
  await linger();
  t.is(claims.length, 1);
  await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  t.is(await slot.begin(DEFINITION), undefined, 'it cannot be created');
  t.not(definitions.get(NAME), undefined);
});

test('a turn that comes when another node has the task by now makes no claim', async (t) => {
  const { slot, claims, turns, kind, grant } = await open(t, new HeldKind());
  const others = Promise.withResolvers<void>();
  const turn = turns.run(() => others.promise);
  slot.consider();
  slot.setOwner(OTHER);
  others.resolve();
  await turn;
  await linger();
  t.is(claims.length, 0);
  slot.setOwner(undefined);
  await grant(0);
  await until('it runs', () => kind.runs.length === 1);
});

test('a claim that is granted after the task was deleted is released', async (t) => {
  const { slot, claims, grant, kind, definitions, timesEmpty } = await open(t, new HeldKind());
  slot.consider();
  await until('it is being claimed', () => claims[0]);
  await definitions.remove(NAME);
  slot.consider();
  t.is(timesEmpty(), 0, 'not while it is being claimed');
  const lease = await grant(0);
  await until('it is released', () => lease.isReleased);
  await until('nothing is left to decide', () => timesEmpty() > 0);
  t.is(kind.runs.length, 0);
});

test('a claim that is granted after the node has closed is released', async (t) => {
  const { slot, claims, grant, kind } = await open(t, new HeldKind());
  slot.consider();
  await until('it is being claimed', () => claims[0]);
  await slot.close();
  const lease = await grant(0);
  await until('it is released', () => lease.isReleased);
  slot.consider();
  await linger();
  t.is(claims.length, 1);
  t.is(kind.runs.length, 0);
});

test('a slot that closes ends its run and claims nothing more', async (t) => {
  const { slot, claims, grant, kind } = await open(t, new HeldKind());
  slot.consider();
  const lease = await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  await slot.close();
  t.like(kind.last?.task.signal.reason, { reason: 'handedOver' });
  t.true(lease.isReleased);
  await slot.close();
  slot.setOwner(undefined);
  await linger();
  t.is(claims.length, 1);
});

test('a slot that closes while it waits for its turn makes no claim', async (t) => {
  const { slot, claims } = await open(t, new HeldStreamKind());
  slot.setOwner(OTHER);
  slot.setOwner(undefined);
  await slot.close();
  await linger();
  await linger();
  t.is(claims.length, 0);
});

test('a task is created by one call alone, and defined afterwards', async (t) => {
  const { slot, grant, kind, definitions, timesEmpty } = await open(t, new HeldKind(), false);
  const created = slot.begin(DEFINITION);
  t.is(await slot.begin(DEFINITION), undefined);
  slot.consider();
  t.is(timesEmpty(), 0, 'not while it is being claimed');
  await grant(0);
  const runner = await created;
  t.is(runner, slot.runner);
  t.is(runner?.isNew, true);
  await until('it runs', () => kind.runs.length === 1);
  t.is(await slot.begin(DEFINITION), undefined);
  await definitions.create(NAME, DEFINITION);
  slot.consider();
  t.is(runner?.isNew, false);
  t.is(await slot.begin(DEFINITION), undefined);
  t.is(timesEmpty(), 0);
});

test('a task that another node has, or that cannot be claimed at its creation, leaves nothing', async (t) => {
  const { slot, claims, timesEmpty } = await open(t, new HeldKind(), false);
  const first = slot.begin(DEFINITION);
  claims[0]?.resolve({ owner: OTHER });
  t.is(await first, undefined);
  t.is(timesEmpty(), 1);
  const second = slot.begin(DEFINITION);
  claims[1]?.reject(away());
  await t.throwsAsync(second, { instanceOf: UnavailableError });
  t.is(timesEmpty(), 2);
});

test('a task that is created anew waits for the end of the deleted one', async (t) => {
  const { slot, claims, grant, kind, definitions, timesEmpty } = await open(t, new HeldKind());
  kind.isSlow = true;
  slot.consider();
  await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  await definitions.remove(NAME);
  slot.consider();
  t.like(kind.last?.task.signal.reason, { reason: 'removed' });
  const created = slot.begin({ ...DEFINITION, uid: 'another' });
  t.is(await slot.begin(DEFINITION), undefined, 'one call alone');
  await linger();
  t.is(claims.length, 1);
  t.not(slot.over, undefined);
  kind.last?.end();
  await grant(1);
  const runner = await created;
  t.is(runner?.isNew, true);
  await until('it runs', () => kind.runs.length === 2);
  t.is(timesEmpty(), 0);
  kind.last?.end();
});

test('a task that waits for the end of the deleted one is not created when the node closes', async (t) => {
  const { slot, claims, grant, kind, definitions } = await open(t, new HeldKind());
  kind.isSlow = true;
  slot.consider();
  await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  await definitions.remove(NAME);
  slot.consider();
  const created = slot.begin({ ...DEFINITION, uid: 'another' });
  const closed = slot.close();
  kind.last?.end();
  await closed;
  for (const { resolve } of claims) resolve({ lease: new FakeLease(9) });
  t.is(await created, undefined);
  t.is(kind.runs.length, 1);
});

/** A task that this node has completed and could not save as such, since the store was away. */
async function completed(t: ExecutionContext) {
  const node = await open(t, new HeldKind());
  const { slot, kind, grant, cluster, definitions } = node;
  const write = cluster.config.write.bind(cluster.config);
  const store = { attempts: 0, isAway: true };
  cluster.config.write = async (changes, expected) => {
    store.attempts += 1;
    if (store.isAway) throw away();
    await write(changes, expected);
  };
  slot.consider();
  const lease = await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  slot.setOwner(self(node, 1));
  kind.last?.end();
  await until('it cannot be deleted', () => store.attempts > 0);
  lease.lose();
  await slot.over;
  t.is(definitions.get(NAME)?.progress, undefined);
  return { ...node, store };
}

test('an owner elsewhere is notified of a complete task when the store is back', async (t) => {
  const { slot, store, definitions } = await completed(t);
  slot.setOwner(OTHER);
  const before = store.attempts;
  await until('it was tried again and again', () => store.attempts > before + 3);
  slot.setOwner({ ...OTHER, fence: 6 });
  store.isAway = false;
  await until('it is saved', () => definitions.get(NAME)?.progress?.over === true);
  const saved = store.attempts;
  slot.setOwner(OTHER);
  await linger();
  t.is(store.attempts, saved);
});

test('an attempt to save that a task is complete ends with the definition, and with the node', async (t) => {
  for (const end of ['definition', 'node'] as const) {
    const { slot, store, definitions, cluster } = await completed(t);
    slot.setOwner(OTHER);
    await until('it was tried', () => store.attempts > 2);
    if (end === 'node') await slot.close();
    else {
      store.isAway = false;
      await definitions.remove(NAME);
      slot.consider();
    }
    await linger();
    const { attempts } = store;
    await linger();
    await linger();
    t.is(store.attempts, attempts);
    t.is(cluster.config.entries().size, end === 'node' ? 1 : 0);
  }
});

test('progress that could not be saved is continued here, and is obsolete when another node has continued it', async (t) => {
  for (const isElsewhere of [false, true]) {
    const { slot, kind, grant, registry, cluster, claims, definitions } = await open(t, new HeldStreamKind());
    const output = publishLive(registry);
    slot.consider();
    const lease = await grant(0);
    await until('it runs', () => kind.runs.length === 1);
    kind.last?.task.keep('so far');
    const write = cluster.config.write.bind(cluster.config);
    cluster.config.write = () => Promise.reject(away());
    lease.lose();
    await slot.over;
    cluster.config.write = write;
    output.input.close('gone');
    if (isElsewhere) {
      slot.setOwner(OTHER);
      await definitions.save(NAME, { uid: 'u', fence: OTHER.fence, step: 1, value: 'elsewhere' });
      slot.setOwner(undefined);
      await linger();
      t.is(claims.length, 1, 'nothing is left to be saved');
      publishLive(registry);
      slot.consider();
    }
    await grant(1, new FakeLease(6));
    if (isElsewhere) {
      await until('it runs', () => kind.runs.length === 2);
      t.is(kind.last?.task.progress, 'elsewhere');
    } else {
      await until('it is saved', () => definitions.get(NAME)?.progress?.value === 'so far');
    }
  }
});

test('a stand-in is closed when another node has the task, and used when this one has it', async (t) => {
  const { slot, kind, grant, definitions } = await open(t, new HeldKind());
  slot.setOwner(OTHER);
  t.true(await slot.standBy(false));
  t.true(await slot.standBy(false));
  t.is(kind.closed, 0);
  slot.setOwner({ ...OTHER, incarnation: 'c1', id: 'c' } as Owner);
  t.is(kind.closed, 1);
  t.true(await slot.standBy(false));
  slot.setOwner(undefined);
  await grant(0);
  await until('it runs', () => kind.runs.length === 1);
  t.is(kind.closed, 1);
  t.false(await slot.standBy(false), 'it runs here');
  await definitions.remove(NAME);
  t.false(await slot.standBy(false), 'it is deleted');
});

test('a node without the application of a task does not stand by for it', async (t) => {
  const { slot, registry } = await open(t, new HeldKind());
  slot.setOwner(OTHER);
  registry.vhost('default').application('app').close('deleted');
  t.false(await slot.standBy(false));
  t.false(await slot.standBy(true));
});

test('a task is not claimed while this node lacks its application', async (t) => {
  const { slot, grant, registry, claims, kind } = await open(t, new HeldKind());
  slot.consider();
  await until('it is being claimed', () => claims[0]);
  const vhost = registry.vhost('default');
  const { config } = vhost.application('app');
  vhost.application('app').close('deleted');
  const lease = await grant(0);
  await until('it is released', () => lease.isReleased);
  await linger();
  t.is(claims.length, 1);
  t.is(kind.runs.length, 0);
  vhost.createApplication(config);
  slot.consider();
  await grant(1);
  await until('it runs', () => kind.runs.length === 1);
});
