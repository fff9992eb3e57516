import type { Cluster, Lease, LostError } from '#cluster';
import type { Process } from './scheduler.ts';

interface Given {
  readonly lease: Lease;
  readonly process: Process;
  readonly incarnation: string;
  readonly since: number;
  wasValid: boolean;
  /** The last with which it was valid. */
  fence: number;
}

/** What is true at any time, whatever happens. */
export class Laws {
  readonly #now: () => number;
  readonly #given = new Set<Given>();
  /** By key the highest fence with which somebody has acted. */
  readonly #highest = new Map<string, number>();
  readonly #taken = new Set<string>();
  readonly #stalled = new Times();
  readonly #cut = new Times();
  readonly #unreachable = new Times();
  readonly #refused = new Times();
  /** Those that were taken for dead by two proofs that were false: whoever has no Redis does not wait for their answers. */
  readonly #mistaken = new Set<string>();
  #withoutRedis = -Infinity;
  #broken: string | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** What was wrong first. */
  get broken(): string | undefined {
    return this.#broken;
  }

  breach(what: string): void {
    this.#broken ??= `${what}, at ${this.#now()} ms`;
  }

  /** A claim was granted. */
  given(lease: Lease, process: Process, incarnation: string): void {
    const given: Given = { lease, process, incarnation, since: this.#now(), wasValid: false, fence: 0 };
    this.#given.add(given);
    lease.signal.addEventListener('abort', () => {
      // one that is forgotten may be lost
      if (this.#given.delete(given)) this.#lost(given, lease.signal.reason as LostError);
    });
  }

  /** Somebody takes the key from whoever has it. */
  mayBeTaken(key: string): void {
    this.#taken.add(key);
  }

  /** A process stands still. */
  stalled(process: Process, forMs: number): void {
    this.#stalled.until(process, this.#now() + forMs);
  }

  /** Its connection to Redis is broken. */
  cut(process: Process, forMs: number): void {
    this.#cut.until(process, this.#now() + forMs);
  }

  /** Another node does not reach it, or gets no connection to its port. */
  unreachable(process: Process, forMs: number, { isRefused }: { readonly isRefused: boolean }): void {
    this.#unreachable.until(process, this.#now() + forMs);
    if (isRefused) this.#refused.until(process, this.#now() + forMs);
  }

  /** Redis stands still, is away, or loses something. */
  withoutRedis(forMs: number): void {
    this.#withoutRedis = Math.max(this.#withoutRedis, this.#now() + forMs);
  }

  /** Redis takes a living process for dead, which takes both: nobody waits for what it has got then. */
  buried(process: Process, incarnation: string): void {
    const now = this.#now();
    const isHarmed = Math.max(this.#withoutRedis, this.#cut.last(process), this.#stalled.last(process)) >= now;
    const isRefused = this.#refused.last(process) >= now;
    if (!isHarmed || !isRefused) this.breach(`${incarnation} is buried, and lives`);
    this.#mistaken.add(incarnation);
    this.forget(process);
  }

  /** A process is gone, and acts no more. */
  forget(process: Process): void {
    for (const given of this.#given) if (given.process === process) this.#given.delete(given);
  }

  /** What a node tells of owners never goes back. */
  follow(cluster: Cluster): void {
    const seen = new Map<string, number>();
    cluster.watch('', (changes) => {
      for (const { key, owner } of changes) {
        if (owner === undefined) continue;
        const before = seen.get(key) ?? 0;
        if (owner.fence < before)
          this.breach(`${cluster.self.id} tells of the fence ${owner.fence} of ${key} after ${before}`);
        seen.set(key, owner.fence);
      }
    });
  }

  check(): void {
    const holders = new Map<string, Given>();
    for (const given of this.#given) {
      const { lease, incarnation } = given;
      const { valid, key, fence } = lease;
      given.wasValid = valid;
      if (!valid) continue;
      const other = holders.get(key);
      if (other !== undefined && ![incarnation, other.incarnation].some((one) => this.#mistaken.has(one)))
        this.breach(
          `${key} has two holders: ${other.incarnation} (${other.lease.fence}) and ${incarnation} (${fence})`,
        );
      holders.set(key, given);
      if (fence === given.fence) continue;
      const highest = this.#highest.get(key) ?? 0;
      if (fence <= highest) this.breach(`${incarnation} has ${key} with the fence ${fence} after ${highest}`);
      this.#highest.set(key, fence);
      given.fence = fence;
    }
  }

  #lost({ lease, process, incarnation, since, wasValid, fence }: Given, { message, owner }: LostError): void {
    const { key, options } = lease as Lease & { readonly options: { readonly silence: string } };
    if (this.#taken.has(key)) return;
    if (wasValid && owner !== undefined && !this.#mistaken.has(owner.incarnation))
      this.breach(
        `${incarnation} has lost ${key} (${fence}), which was valid, to ${owner.incarnation} (${owner.fence})`,
      );
    // one that was never confirmed may be another's
    if (options.silence === 'continue' && fence > 0 && !this.#mayLose(process, since))
      this.breach(`${incarnation} has lost ${key} (${fence}), and nothing was wrong with it: ${message}`);
  }

  /** Whether what a process has had since then may have been taken for that of a dead one: when it could not say that it lives. */
  #mayLose(process: Process, since: number): boolean {
    if (this.#stalled.last(process) >= since) return true;
    const isAlone = this.#unreachable.last(process) >= since || this.#withoutRedis >= since;
    return this.#cut.last(process) >= since && isAlone;
  }
}

/** Until when something is so, of each process. */
class Times {
  readonly #ends = new WeakMap<Process, number>();

  until(process: Process, end: number): void {
    this.#ends.set(process, Math.max(end, this.last(process)));
  }

  last(process: Process): number {
    return this.#ends.get(process) ?? -Infinity;
  }
}
