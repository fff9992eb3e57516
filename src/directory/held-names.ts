import { setTimeout as delay } from 'node:timers/promises';
import { isSameIncarnation, type Claim, type Cluster, type Lease, type NodeIdentity } from '#cluster';
import type { Application } from '../core/application.ts';
import { kilnError } from '../errors.ts';
import { within } from '../lib/within.ts';
import type { Logger } from '../log/log.ts';
import type { StreamChanges, StreamWatch } from './stream-changes.ts';

/** Maximum wait for a name: encoders give up after ten seconds. */
const HOLD_MS = 8000;
/** Publishers that wait at once. */
const MAX_HELD = 1000;
/** Pause between two questions to a node that cannot be reached. */
const ASK_AGAIN_MS = 1000;

export interface HeldNamesOptions {
  readonly cluster: Pick<Cluster, 'self' | 'lives'>;
  readonly changes: StreamChanges;
  readonly log: Logger;
}

export interface WantedName {
  readonly application: Application;
  readonly name: string;
  /** Aborts when the publisher is gone. */
  readonly signal: AbortSignal | undefined;
}

type Outcome = 'changed' | 'lives' | 'over';

/**
 * Claims names of streams. If another node owns a name, that node is asked whether it lives: if so the name is in use. While
 * it does not answer it may have died, perhaps the node that the publisher published to before: the publisher then waits, and
 * gets the name as soon as it is free.
 */
export class HeldNames {
  readonly #options: HeldNamesOptions;
  /** By incarnation: many publishers of a node that died may return at once. */
  readonly #asked = new Map<string, Promise<boolean | undefined>>();
  #held = 0;

  constructor(options: HeldNamesOptions) {
    this.#options = options;
  }

  /** Publishers that wait for a node that has not answered. */
  get held(): number {
    return this.#held;
  }

  /**
   * @param attempt claims the name once
   * @throws streamExists, streamNameUnconfirmed after the maximum wait, tooManyWaiting, clientGone, and what `attempt` throws
   */
  async claim(wanted: WantedName, attempt: () => Promise<Claim>): Promise<Lease> {
    const until = performance.now() + HOLD_MS;
    const claim = await this.#within(until, wanted, attempt());
    if ('lease' in claim) return claim.lease;
    const { cluster, changes } = this.#options;
    if (isSameIncarnation(claim.owner, cluster.self)) throw kilnError('streamExists');
    if (this.#held >= MAX_HELD) throw kilnError('tooManyWaiting');
    const watch = changes.watch(wanted.application, (input) => input === wanted.name);
    this.#held++;
    try {
      return await this.#hold(until, wanted, attempt, claim.owner, watch);
    } finally {
      this.#held--;
      watch.close();
    }
  }

  async #hold(
    until: number,
    wanted: WantedName,
    attempt: () => Promise<Claim>,
    first: NodeIdentity,
    watch: StreamWatch,
  ): Promise<Lease> {
    let reported: NodeIdentity | undefined;
    for (let owner = first; ;) {
      const outcome = await this.#wait(until, owner, watch, wanted, () => {
        if (!isSameIncarnation(reported, owner)) this.#report(wanted, owner);
        reported = owner;
      });
      if (wanted.signal?.aborted === true) throw kilnError('clientGone');
      if (outcome === 'lives') throw kilnError('streamExists');
      // also at the end: news of a change may be lost
      const claim = await this.#within(Math.max(until, performance.now() + ASK_AGAIN_MS), wanted, attempt());
      if ('lease' in claim) return claim.lease;
      owner = claim.owner;
      if (isSameIncarnation(owner, this.#options.cluster.self)) throw kilnError('streamExists');
      if (outcome === 'over') throw kilnError('streamNameUnconfirmed');
    }
  }

  /** @param onSilent called for each question that the owner has not answered */
  async #wait(
    until: number,
    owner: NodeIdentity,
    watch: StreamWatch,
    { signal }: WantedName,
    onSilent: () => void,
  ): Promise<Outcome> {
    const done = new AbortController();
    const changed = watch.next(Math.max(0, until - performance.now()), signal);
    try {
      return await Promise.race([
        changed.then((has): Outcome => (has ? 'changed' : 'over')),
        this.#untilAnswered(owner, done.signal, onSilent),
      ]);
    } finally {
      done.abort();
    }
  }

  async #untilAnswered(owner: NodeIdentity, signal: AbortSignal, onSilent: () => void): Promise<Outcome> {
    while (!(await this.#answers(owner))) {
      if (!signal.aborted) onSilent();
      await delay(ASK_AGAIN_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return 'over';
    }
    return 'lives';
  }

  #answers(node: NodeIdentity): Promise<boolean | undefined> {
    const present = this.#asked.get(node.incarnation);
    if (present !== undefined) return present;
    const asked = this.#options.cluster.lives(node).finally(() => this.#asked.delete(node.incarnation));
    this.#asked.set(node.incarnation, asked);
    return asked;
  }

  /**
   * Waits for a claim. Releases one that succeeds too late, or after the publisher has gone.
   * @throws streamNameUnconfirmed, clientGone
   */
  async #within(until: number, { signal }: WantedName, claiming: Promise<Claim>): Promise<Claim> {
    const claim = await within(Math.max(0, until - performance.now()), claiming, signal);
    if (claim !== undefined && signal?.aborted !== true) return claim;
    void claiming.then(
      async (unwanted) => {
        if ('lease' in unwanted) await unwanted.lease.release();
      },
      () => undefined,
    );
    throw kilnError(signal?.aborted === true ? 'clientGone' : 'streamNameUnconfirmed');
  }

  #report({ application, name }: WantedName, { id }: NodeIdentity): void {
    this.#options.log.info(
      { event: 'publisher.held', stream: `${application.internalName}/${name}`, node: id, held: this.#held },
      'a publisher has to wait: the node that owns the name of its stream does not answer, and may have died',
    );
  }
}
