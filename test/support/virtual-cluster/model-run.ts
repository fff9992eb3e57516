import type { ClaimOptions, Cluster, Lease } from '#cluster';
import { UnavailableError } from '../../../cluster/errors.ts';
import { timingOf } from '../../../cluster/redis/timing.ts';
import { Laws } from './laws.ts';
import type { Lua } from './lua.ts';
import type { Fault } from './net.ts';
import { openNode, PREFIX } from './node.ts';
import type { Action, ActionKind, Plan } from './plan.ts';
import type { RedisData } from './redis-data.ts';
import { REDIS } from './redis.ts';
import { SCRIPT_NAMES } from './replaced.ts';
import type { Process } from './scheduler.ts';
import { ScriptLog } from './script-log.ts';
import { World } from './world.ts';

const NAMES = ['a', 'b', 'c', 'd'] as const;
/** Times as in life, but for how long a lost node is listed. */
const FORGET_MS = 4000;
/** How long it takes at most, after the last fault, until all is as it should be. */
const CALM_MS = 15_000;
const TTL_MS = timingOf().ttl;
/** After a fault a node may need so long to be heard of again. */
const AFTERMATH_MS = 3000;
const POLL_MS = 400;
/** After a new Redis has been up for so long it is taken for granted that all who have anything have found it: recovery.lua. */
const FOUND_MS = 3000;
/** What Redis may lose alone. */
const LOSABLE = [
  'claims',
  'claims:of',
  'claims:lost',
  'claims:log',
  'claims:gone',
  'claims:revision',
  'claims:floor',
  'clock',
  'config',
  'config:log',
  'epoch',
  'epoch:nodes',
  'fence',
  'nodes',
  'nodes:buried',
  'nodes:fate',
  'nodes:gone',
  'nodes:heard',
  'nodes:seen',
];

/** Of these it finds out, too, that it has lost a single entry. */
const COUNTED = ['claims', 'claims:of', 'nodes', 'nodes:heard'];

/** A node, and what it has got. */
interface Member {
  readonly id: string;
  readonly process: Process;
  cluster: Cluster | undefined;
  readonly leases: Set<Lease>;
  /** Claims that are not answered yet. */
  pending: number;
}

export interface RunOptions {
  readonly lua: Lua;
  /** Hears whatever happens. */
  readonly onLine?: (line: string) => void;
}

/** @returns what was wrong; undefined when nothing was */
export async function runPlan(plan: Plan, { lua, onLine }: RunOptions): Promise<string | undefined> {
  const run = new ModelRun(plan, lua, onLine);
  const end = run.world.scheduler.begin();
  try {
    return await run.run();
  } finally {
    end();
  }
}

class ModelRun {
  readonly world: World;
  readonly #plan: Plan;
  readonly #onLine: ((line: string) => void) | undefined;
  readonly #laws: Laws;
  /** By id, those that are there; one that is dead is none. */
  readonly #members = new Map<string, Member>();
  /** Lives that are over. */
  readonly #gone = new Set<string>();
  #dump: RedisData | undefined;
  /** Starts a Redis that has died, with what it is to have then. */
  #comesBack = (): void => {};
  /** Until then nobody is cut off from Redis, which has begun anew. */
  #foundBy = -Infinity;
  /** Redis has lost the rows of nodes: of those that had died nothing else is found. */
  #hasLostRows = false;

  constructor(plan: Plan, lua: Lua, onLine: ((line: string) => void) | undefined) {
    this.#plan = plan;
    this.#onLine = onLine;
    const log = new ScriptLog();
    this.world = new World({
      lua,
      seed: plan.seed,
      onScript: ({ name }, hash, args, reply) => {
        const script = SCRIPT_NAMES.get(hash) ?? hash;
        const line = onLine === undefined ? undefined : log.line(name, script, args, reply);
        if (line !== undefined) this.#say(line);
        if (script === 'markDead' && reply === 'dead') this.#onMarkedDead(args[1] as string);
      },
    });
    const { scheduler } = this.world;
    this.#laws = new Laws(() => scheduler.now);
    scheduler.onTurn = () => this.#laws.check();
  }

  async run(): Promise<string | undefined> {
    const { scheduler } = this.world;
    for (const id of NAMES.slice(0, this.#plan.nodes)) this.#start(id);
    for (const action of this.#plan.actions) {
      await scheduler.runUntil(action.at);
      if (this.#laws.broken !== undefined) return this.#laws.broken;
      this.#act(action);
    }
    return (await this.#calm()) ?? (await this.#forget());
  }

  /** Nothing is done any more, and nothing is broken: all nodes agree with what is held. */
  async #calm(): Promise<string | undefined> {
    const { net, redis, scheduler } = this.world;
    this.#say('all is mended');
    net.healAll();
    this.#comesBack();
    redis.process.resume();
    for (const { process } of this.#members.values()) process.resume();
    // somebody has to find what is left of the others
    if (this.#members.size === 0) this.#start(NAMES[0]);
    await scheduler.runUntil(scheduler.now + POLL_MS);
    // what nobody has, everybody may claim by then
    for (const member of this.#members.values()) this.#claim(member, `k/own-${member.id}`, { silence: 'stop' });
    const wrong = await this.#until(CALM_MS, () => this.#difference());
    if (wrong === undefined || wrong === this.#laws.broken) return wrong;
    return `${wrong}, ${CALM_MS} ms after all was mended`;
  }

  /** Nothing in Redis names what is gone for good. */
  async #forget(): Promise<string | undefined> {
    if (this.#gone.size === 0 || this.#hasLostRows) return undefined;
    return await this.#until(FORGET_MS + CALM_MS, () => Promise.resolve(this.#trace()));
  }

  async #until(withinMs: number, wrong: () => Promise<string | undefined>): Promise<string | undefined> {
    const { scheduler } = this.world;
    for (const end = scheduler.now + withinMs; ;) {
      await scheduler.runUntil(scheduler.now + POLL_MS);
      if (this.#laws.broken !== undefined) return this.#laws.broken;
      const difference = await wrong();
      if (difference === undefined || scheduler.now > end) return difference;
    }
  }

  async #difference(): Promise<string | undefined> {
    const members = [...this.#members.values()];
    const silent = members.find(({ cluster }) => cluster?.state !== 'connected');
    if (silent !== undefined) return `${silent.id} is ${silent.cluster?.state ?? 'not open'}`;
    const lists: string[] = [];
    for (const [at, { process, cluster }] of members.entries()) {
      const list = async (): Promise<void> => {
        const owners = await (cluster as Cluster).list('k');
        lists[at] = text(Array.from(owners, ([key, { incarnation, ...owner }]) => claimText(key, incarnation, owner)));
      };
      void process.enter(list);
    }
    await this.world.scheduler.runUntil(this.world.scheduler.now + POLL_MS);
    const waiting = members.find(({ pending }) => pending > 0);
    if (waiting !== undefined) return `a claim of ${waiting.id} is not answered`;
    const leases = members.flatMap(({ cluster, leases: own }) =>
      Array.from(own, (lease) => ({ lease, incarnation: (cluster as Cluster).self.incarnation })),
    );
    const lapsed = leases.find(({ lease }) => !lease.valid);
    if (lapsed !== undefined) return `${lapsed.incarnation} has ${lapsed.lease.key}, which is not valid`;
    const held = text(leases.map(({ lease, incarnation }) => claimText(lease.key, incarnation, lease)));
    const other = lists.findIndex((list) => list !== held);
    if (other >= 0 || lists.length !== members.length)
      return `${members[other]?.id} lists ${lists[other]}, and held is ${held}`;
    const ready = text(members.map(({ cluster }) => (cluster as Cluster).self.incarnation));
    for (const { id, cluster } of members) {
      const alive = (cluster as Cluster).nodes().filter(({ state }) => state !== 'lost');
      const seen = text(alive.map(({ incarnation }) => incarnation));
      if (seen !== ready) return `${id} sees the nodes ${seen}, and there are ${ready}`;
    }
    return undefined;
  }

  /** A life that is over, where Redis names it. */
  #trace(): string | undefined {
    const { data } = this.world.redis;
    for (const key of data.keys()) {
      // it goes by itself, though later when the clock is set back
      if (data.left(key) >= 0) continue;
      const content = data.contentOf(key);
      for (const gone of this.#gone) {
        const id = gone.replace(/-\d+$/, '');
        const isHere = this.#members.has(id);
        const names = new RegExp(`(^|[ :])(${gone}${isHere ? '' : `|${id}`})($|[ :])`);
        const found = [key, ...content].find((part) => names.test(part));
        if (found !== undefined) return `Redis names ${gone} in ${key}: ${found}`;
      }
    }
    return undefined;
  }

  #say(line: string): void {
    this.#onLine?.(`${String(this.world.scheduler.now).padStart(6)} ${line}`);
  }

  #start(id: string): void {
    const process = this.world.process(id);
    const member: Member = { id, process, cluster: undefined, leases: new Set(), pending: 0 };
    this.#members.set(id, member);
    void openNode(process, {
      onFault: (error) => {
        this.#say(`${id} reports: ${error.message}`);
        if (!(error instanceof UnavailableError)) this.#laws.breach(`${id} has a fault: ${error.stack}`);
      },
      onMarkedDead: ({ incarnation }) => this.#say(`${id} hears that ${incarnation} is buried`),
      timing: { forget: FORGET_MS },
    }).then((cluster) => {
      this.#laws.follow(cluster);
      member.cluster = cluster;
      this.#say(`${id} is open as ${cluster.self.incarnation}`);
    });
  }

  #onMarkedDead(incarnation: string): void {
    const member = [...this.#members.values()].find(({ cluster }) => cluster?.self.incarnation === incarnation);
    if (member !== undefined) this.#laws.buried(member.process, incarnation);
  }

  /** A process is gone, or about to leave: what it has got counts no more. */
  #end(member: Member): void {
    this.#members.delete(member.id);
    if (member.cluster !== undefined) this.#gone.add(member.cluster.self.incarnation);
    this.#laws.forget(member.process);
  }

  #claim(member: Member, key: string, options: ClaimOptions): void {
    const { id, process, cluster, leases } = member;
    if (cluster === undefined) return;
    const isOwn = [...leases].some((lease) => lease.key === key);
    if (isOwn && options.take === undefined) return;
    member.pending += 1;
    if (options.take !== undefined) this.#laws.mayBeTaken(key);
    const claim = async (): Promise<void> => {
      const granted = await cluster.claim(key, id, options).catch((error: Error) => error);
      member.pending -= 1;
      if (granted instanceof Error) {
        this.#say(`${id} cannot claim ${key}: ${granted.message}`);
        if (!(granted instanceof UnavailableError)) this.#laws.breach(`${id} cannot claim ${key}: ${granted.stack}`);
      } else if ('owner' in granted)
        this.#say(`${id} is told that ${granted.owner.incarnation} has ${key} (${granted.owner.fence})`);
      else {
        const { lease } = granted;
        this.#say(`${id} has got ${key} (${lease.fence})`);
        // who waited for the answer is gone
        if (this.#members.get(id) !== member) return void lease.release();
        const onLoss = (): void => {
          leases.delete(lease);
          this.#say(`${id} has lost ${key} (${lease.fence}): ${(lease.signal.reason as Error).message}`);
        };
        // one that could not be confirmed may be lost already
        if (lease.signal.aborted) return onLoss();
        leases.add(lease);
        lease.signal.addEventListener('abort', onLoss);
        this.#laws.given(lease, process, cluster.self.incarnation);
      }
    };
    void process.enter(claim);
  }

  #act({ kind, node, other, ms }: Action): void {
    const member = this.#members.get(NAMES[node % this.#plan.nodes] as string);
    const harm = HARMS[kind];
    if (harm !== undefined) {
      this.#say(`${kind} ${ms} ${other}`);
      return harm(this, { ms, other });
    }
    if (kind === 'start') {
      const id = NAMES[node % NAMES.length] as string;
      if (this.#members.has(id)) return;
      this.#say(`start ${id}`);
      return this.#start(id);
    }
    if (member === undefined || !member.process.isRunning) return;
    this.#say(`${kind} ${member.id} ${ms} ${other}`);
    this.#use(kind, member, { other, ms });
  }

  #use(kind: ActionKind, member: Member, { other, ms }: Pick<Action, 'other' | 'ms'>): void {
    const { process, leases, cluster, id } = member;
    const key = `k/${other % this.#plan.keys}`;
    const lease = [...leases][other % Math.max(1, leases.size)];
    const others = NAMES.slice(0, this.#plan.nodes).filter((name) => name !== id);
    const peer = others[other % others.length] as string;
    switch (kind) {
      case 'claim':
        return this.#claim(member, key, {
          silence: ms % 3 === 0 ? 'stop' : 'continue',
          keepMs: ms % 2 === 0 ? 0 : 5000,
        });
      case 'take':
        // one key only: of others it is known that nobody takes them
        return this.#claim(member, 'k/0', { silence: ms % 2 === 0 ? 'stop' : 'continue', take: true });
      case 'release':
        if (lease === undefined) return;
        leases.delete(lease);
        return void process.enter(() => lease.release());
      case 'update':
        return void process.enter(() => lease?.update(ms).catch(() => undefined));
      case 'keep':
        return void process.enter(() => lease?.keep(ms).catch(() => undefined));
      case 'leave':
        this.#end(member);
        // what it still does is done for nobody
        if (cluster === undefined) return process.kill();
        return void process.enter(() => cluster.close().then(() => process.kill()));
      case 'stall':
        process.stall();
        this.#laws.stalled(process, ms + AFTERMATH_MS);
        return this.world.scheduler.after(ms, () => process.resume());
      case 'kill':
        this.#end(member);
        return process.kill();
      case 'powerOff':
        this.#end(member);
        return this.world.net.silence(process);
      case 'cutFromRedis':
        return this.#break(process, REDIS, 'cut', ms);
      case 'darkToRedis':
        return this.#break(process, REDIS, 'dark', ms);
      case 'cutFromPeer':
        return this.#break(process, peer, 'cut', ms);
      case 'darkToPeer':
        return this.#break(process, peer, 'dark', ms);
      case 'refusedByPeer':
        return this.#break(process, peer, 'refused', ms);
      default:
        throw new Error(`nobody does ${kind}`);
    }
  }

  #break(process: Process, host: string, fault: Fault, ms: number): void {
    const { net, scheduler } = this.world;
    if (host === REDIS && scheduler.now < this.#foundBy) return;
    net.breaks(process.name, host, fault);
    scheduler.after(ms, () => net.heal(process.name, host));
    const forMs = ms + AFTERMATH_MS;
    if (host === REDIS) return this.#laws.cut(process, forMs);
    const peer = this.#members.get(host)?.process;
    for (const end of [process, peer])
      if (end !== undefined) this.#laws.unreachable(end, forMs, { isRefused: fault === 'refused' });
  }

  /** Redis dies, and comes back with what is given then. */
  restart(ms: number, data: () => RedisData | undefined, options?: { readonly wasReplica: boolean }): void {
    const { redis, scheduler } = this.world;
    if (!redis.process.isAlive) return;
    this.withoutRedis(ms);
    redis.process.kill();
    const content = data();
    this.#comesBack = () => {
      if (redis.process.isAlive) return;
      redis.run(content, options);
      if (content === undefined) this.#letFind();
    };
    scheduler.after(ms, this.#comesBack);
  }

  #letFind(): void {
    const { net, scheduler } = this.world;
    for (const { process } of this.#members.values()) net.heal(process.name, REDIS);
    this.#foundBy = scheduler.now + FOUND_MS;
  }

  withoutRedis(ms: number): void {
    this.#laws.withoutRedis(ms + AFTERMATH_MS);
  }

  dump(): void {
    this.#dump = this.world.redis.dump();
  }

  get dumped(): RedisData | undefined {
    return this.#dump;
  }

  deleteKey(key: string): void {
    this.withoutRedis(0);
    this.#hasLostRows ||= key === 'nodes';
    this.world.redis.data.delete(PREFIX + key);
  }

  /** Whoever is still there wants all keys that may be free, as nodes want the tasks of a dead one. */
  #rush(members: readonly Member[]): void {
    for (const member of members) {
      if (!member.process.isRunning || this.#members.get(member.id) !== member) continue;
      for (let key = 0; key < this.#plan.keys; key++) this.#claim(member, `k/${key}`, { silence: 'stop' });
    }
  }

  breakAll(last: number, other: number): void {
    const { scheduler } = this.world;
    const members = [...this.#members.values()];
    for (const [at, member] of members.entries()) {
      const ms = at === last % members.length ? 3 * TTL_MS : TTL_MS + 100 + ((other * 37 + at * 613) % 1500);
      this.#break(member.process, REDIS, 'cut', ms);
      // the time of Redis went on by a part of the time to live when nobody was there, and the rest follows
      const onBack = (): void =>
        [0, TTL_MS * 0.6].forEach((after) => scheduler.after(after, () => this.#rush([member])));
      scheduler.after(ms, () => member.cluster?.events.once('state', onBack));
    }
  }

  rollBack(ms: number): void {
    const { redis, scheduler } = this.world;
    const { process } = redis;
    const old = redis.dump();
    scheduler.after(ms, () => {
      if (redis.process !== process || !process.isAlive) return;
      this.#say('Redis is what it was');
      this.withoutRedis(0);
      redis.goBack(old);
      this.#rush([...this.#members.values()]);
    });
  }

  deleteEntry(other: number): void {
    const key = COUNTED[other % COUNTED.length] as string;
    const { data } = this.world.redis;
    // of claims, as many of both kinds are not missed
    const missing = data.hash(`${PREFIX}claims`).size - data.scores(`${PREFIX}claims:of`).size;
    if (missing !== 0 && key.startsWith('claims')) return;
    const entries = key === 'claims' || key === 'nodes' ? data.hash(PREFIX + key) : data.scores(PREFIX + key);
    const entry = [...entries.keys()][other % Math.max(1, entries.size)];
    if (entry === undefined) return;
    this.withoutRedis(0);
    this.#hasLostRows ||= key === 'nodes';
    this.#say(`the entry ${entry} of ${key} is gone`);
    data.keep(PREFIX + key, entries, Number(entries.delete(entry)));
  }

  resetRedis(): void {
    for (const { process } of this.#members.values()) {
      this.#laws.cut(process, AFTERMATH_MS);
      this.world.net.reset(process.name, REDIS);
    }
  }
}

/** What happens to Redis. */
const HARMS: Partial<Record<ActionKind, (run: ModelRun, by: Pick<Action, 'ms' | 'other'>) => void>> = {
  resetRedis: (run) => run.resetRedis(),
  stallRedis: (run, { ms }) => {
    const { scheduler, redis } = run.world;
    const { process } = redis;
    run.withoutRedis(ms);
    process.stall();
    scheduler.after(ms, () => process.resume());
  },
  restartRedis: (run, { ms }) => run.restart(ms, () => run.world.redis.dump()),
  emptyRedis: (run, { ms }) => run.restart(ms, () => undefined),
  flushRedis: (run) => {
    run.withoutRedis(0);
    run.world.redis.flush();
  },
  dumpRedis: (run) => run.dump(),
  restoreRedis: (run, { ms }) => run.restart(ms, () => run.dumped),
  failOver: (run, { ms }) => run.restart(ms % 100, () => run.dumped, { wasReplica: true }),
  deleteKey: (run, { other }) => run.deleteKey(LOSABLE[other % LOSABLE.length] as string),
  rollBack: (run, { ms }) => run.rollBack(ms),
  allFromRedis: (run, { ms, other }) => run.breakAll(ms, other),
  deleteEntry: (run, { other }) => run.deleteEntry(other),
  jump: ({ world: { redis } }, { ms, other }) =>
    redis.jump((other % 2 === 0 ? -1 : 1) * ms * (other % 3 === 0 ? 1000 : 1)),
};

function text(items: readonly string[]): string {
  return `[${[...items].sort().join(', ')}]`;
}

function claimText(key: string, incarnation: string, { fence, meta }: Pick<Lease, 'fence' | 'meta'>): string {
  return `${key} ${incarnation} ${fence} ${JSON.stringify(meta)}`;
}
