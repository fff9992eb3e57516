import type { PeerHandler, NodeIdentity } from '#cluster';
import { Random } from '../../soak/random.ts';
import type { Lua, Reply } from './lua.ts';
import { Net } from './net.ts';
import { VirtualRedis } from './redis.ts';
import { here, Process, Scheduler } from './scheduler.ts';

/** What a node accepts on its cluster port. */
export interface PeerEntry {
  readonly self: NodeIdentity;
  readonly handler: PeerHandler;
}

export interface WorldOptions {
  readonly lua: Lua;
  readonly seed: number;
  readonly onScript?: (process: Process, hash: string, args: readonly string[], reply: Reply) => void;
}

/** Worlds by their schedulers: what stands in for parts of the cluster knows the process that it is in. */
const worlds = new WeakMap<Scheduler, World>();

/** A Redis, hosts with nodes, and what is between them. */
export class World {
  readonly scheduler = new Scheduler();
  readonly random: Random;
  readonly net: Net;
  readonly redis: VirtualRedis;
  readonly peers = new Map<Process, PeerEntry>();
  /** Whose script runs. */
  asking: Process | undefined;
  #names = 0;

  constructor({ lua, seed, onScript }: WorldOptions) {
    this.random = new Random(seed);
    this.net = new Net(this.scheduler, this.random);
    const { scheduler, net } = this;
    this.redis = new VirtualRedis({
      scheduler,
      net,
      lua,
      ...(onScript !== undefined && {
        onScript: (hash: string, args: readonly string[], reply: Reply) => {
          if (this.asking !== undefined) onScript(this.asking, hash, args, reply);
        },
      }),
    });
    worlds.set(scheduler, this);
  }

  /** The world of the process whose code runs now. */
  static get here(): World {
    return worlds.get(here().scheduler) as World;
  }

  process(name: string): Process {
    return new Process(name, this.scheduler);
  }

  /** Lets time go on until the promise is settled, to the millisecond. @throws what the promise rejects with */
  async until<T>(promise: Promise<T>): Promise<T> {
    const settled = { is: false };
    const settle = (): void => void (settled.is = true);
    promise.then(settle, settle);
    while (!settled.is) await this.pass(1);
    return await promise;
  }

  pass(ms: number): Promise<void> {
    return this.scheduler.runUntil(this.scheduler.now + ms);
  }

  /** A name that there was not before. */
  newName(of: string): string {
    return `${of}-${(this.#names += 1)}`;
  }
}
