import { coalesced } from '../../coalesce.ts';
import { UnavailableError } from '../../errors.ts';
import type { Claim, ClaimOptions, Json, NodeIdentity, Owner } from '../../types.ts';
import { Batch } from '../batch.ts';
import { requestClaim, type Claimant, type ClaimAnswer, type ClaimRequest } from './claim-request.ts';
import { LeaseExpiry } from './lease-expiry.ts';
import { AbandonedClaims } from './abandoned-claims.ts';
import type { Beat } from '../nodes.ts';
import { LeaseSet } from './lease-set.ts';
import { RedisLease, type LeaseKeeper, type LeaseValues } from './lease.ts';
import { parseClaim, type ClaimRecord } from '../record.ts';
import { SCRIPTS } from '../scripts.ts';
import { validity } from '../timing.ts';

/** Leases that are looked up in one step: other clients of Redis wait that long. */
const BATCH = 500;
/**
 * Delay in which inherited values of several leases are collected: each packaged stream writes one with each segment, and a command
 * costs Redis more than the values in it.
 */
const KEEP_WAIT_MS = 300;

/** Values of a lease that are to be written. */
interface PendingWrite {
  readonly lease: RedisLease;
  readonly values: LeaseValues;
}

export interface LeasesOptions extends Claimant {
  /** Latest claim of a key known to this node. */
  readonly latest: (key: string) => ClaimRecord | undefined;
  /** Until when this node has promised others to hold nothing new, on the monotonic clock. */
  readonly promised: () => number;
}

/** Leases of this node. Its beat renews all of them. */
export class Leases {
  readonly #options: LeasesOptions;
  readonly #leases = new LeaseSet();
  readonly #abandoned: AbandonedClaims;
  /** Basis of the last beat after which Redis had every lease that is not to be made again. */
  #basis = '';
  /** The highest fence seen: no later one is lower, even of a Redis that has lost its own. */
  #highest = 0;
  /** Tokens of claims that are not answered yet. */
  readonly #asked = new Set<string>();
  /** By the token of a claim that was taken: what to do when its holder has stopped. */
  readonly #waiting = new Map<string, () => void>();
  /** Simultaneous calls share a run. Failures because Redis is unreachable are retried with the next beat. */
  readonly #reportAbandoned = coalesced(() =>
    this.#abandoned.report().catch((error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
    }),
  );
  readonly #writes = new Batch((written: readonly PendingWrite[]) => this.#write(written), {
    waitMs: KEEP_WAIT_MS,
    most: BATCH,
  });
  /** Leases of which something is being written, or waits for others. */
  readonly #writing = new Set<RedisLease>();
  readonly #ends = new LeaseExpiry(() => this.#onEnd());
  readonly #keeper: LeaseKeeper = {
    write: (lease, values) => this.#writeOne(lease, values),
    release: (lease) => this.#release(lease),
  };

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#abandoned = new AbandonedClaims(options.connection, options.timing.ttl);
  }

  /**
   * @returns undefined when this node has promised since then to claim nothing, and while only previous holders may claim
   * @throws UnavailableError
   */
  async claim(key: string, token: string, meta: Json, options: ClaimOptions): Promise<Claim | undefined> {
    this.#asked.add(token);
    try {
      return await this.#claim(key, token, meta, options);
    } finally {
      this.#asked.delete(token);
    }
  }

  async #claim(key: string, token: string, meta: Json, options: ClaimOptions): Promise<Claim | undefined> {
    const sent = performance.now();
    const mayHold = this.#unlessPromised();
    let answer: ClaimAnswer;
    try {
      answer = await this.#ask({ key, token, meta, options, before: 'none' });
    } catch (error) {
      this.#abandon(key, token, options);
      throw error;
    }
    if (answer === undefined || 'owner' in answer) return answer;
    if (!mayHold()) {
      this.#abandon(key, token, options);
      return undefined;
    }
    const { fence, inherited, taken } = answer;
    const lease = this.#add({
      key,
      token,
      fence,
      inherited,
      meta,
      validUntil: sent + this.#validity,
      options,
      waits: taken !== undefined,
    });
    // an earlier one of this node's, too, that Redis has lost
    this.observe(key, { token, owner: { ...this.#options.self, fence, meta } });
    const latest = this.#options.latest(key);
    if (latest !== undefined) this.observe(key, latest);
    if (taken !== undefined) await this.#untilYielded(lease, taken);
    return { lease };
  }

  /** Holds a key that the store is yet to confirm. */
  holdUnconfirmed(key: string, token: string, meta: Json, options: ClaimOptions): RedisLease {
    return this.#add({
      key,
      token,
      fence: 0,
      inherited: undefined,
      meta,
      validUntil: -Infinity,
      options,
      waits: false,
    });
  }

  /** The highest fence that this node has seen. */
  get highest(): number {
    return this.#highest;
  }

  /** State of the claims that Redis has lost: `0` a valid one is still to be made again, `1` one that is not valid, `2` none. */
  get remade(): 0 | 1 | 2 {
    const lost = [...this.#leases].filter(({ isRemade, fence, ended }) => isRemade && fence > 0 && !ended);
    if (lost.length === 0) return 2;
    return lost.some(({ valid }) => valid) ? 0 : 1;
  }

  get size(): number {
    return this.#leases.size;
  }

  holds(key: string): boolean {
    return this.#leases.of(key).some((lease) => !lease.ended);
  }

  /**
   * Call it before a beat is sent, and the result when Redis has answered it. The beat renews what Redis has of this node:
   * where it may have lost something it is asked for each lease, and what is another's by now is lost.
   * The result throws UnavailableError when some may not be renewed.
   */
  expectBeat(): (beat: Pick<Beat, 'sentAt' | 'basis' | 'replaced'>) => Promise<void> {
    const mayHold = this.#unlessPromised();
    return async ({ sentAt, basis, replaced }) => {
      this.#expire();
      // first, so that no lease meets the remains of an earlier attempt to claim its key
      await this.#abandoned.report();
      if (replaced) return;
      const renew = (lease: RedisLease): void => {
        if (lease.valid || mayHold()) lease.extend(sentAt + this.#validity);
      };
      const leases = [...this.#leases];
      const doubtful: RedisLease[] = [];
      // a claim that was lost says nothing of the others; another state of Redis may lack each of them
      const isOther = stateOf(this.#basis) !== stateOf(basis);
      for (const lease of leases) {
        if (isOther) lease.doubt();
        if (this.#basis !== basis || lease.isRemade || lease.fence === 0) doubtful.push(lease);
        else renew(lease);
      }
      for (let at = 0; at < doubtful.length; at += BATCH) await this.#find(doubtful.slice(at, at + BATCH), renew);
      this.#basis = basis;
      const settled = leases.filter(({ ended, isRemade, fence }) => !ended && !isRemade && fence > 0);
      await this.#writePending(settled);
    };
  }

  /** True when there is a valid lease, which would become invalid at its end. */
  get atStake(): boolean {
    return [...this.#leases].some(({ valid }) => valid);
  }

  /** Held keys with their fences. */
  held(): (readonly [key: string, fence: number])[] {
    return [...this.#leases].filter(({ fence }) => fence > 0).map(({ key, fence }) => [key, fence]);
  }

  /** Returns the keys held by another node of which this node has a later claim. This node loses its earlier claims. */
  superseding(held: readonly (readonly [key: string, fence: number])[], by: NodeIdentity): string[] {
    const fences = new Map(held);
    for (const lease of this.#leases) {
      const fence = fences.get(lease.key) ?? 0;
      if (lease.fence > 0 && lease.fence < fence) this.#lose(lease, { ...by, fence, meta: null });
    }
    return [...this.#leases].filter(({ key, fence }) => fence > (fences.get(key) ?? Infinity)).map(({ key }) => key);
  }

  /**
   * The other nodes have promised not to claim what is held here, for the time to live from `asked` on (monotonic clock).
   * @param superseded keys that others have claimed already
   */
  extendAll(asked: number, superseded: ReadonlySet<string>): void {
    for (const lease of this.#leases) {
      if (superseded.has(lease.key)) lease.lose(`${lease.key} was taken`);
      // one that is not valid now may have a successor that is not known here
      else if (lease.valid) lease.extend(asked + this.#validity);
    }
  }

  /** Others may have everything that is held here. */
  loseAll(): void {
    for (const lease of [...this.#leases]) this.#lose(lease, undefined);
  }

  /** Redis has had this fence; ids of epochs are fences, too. */
  see(fence: number): void {
    this.#highest = Math.max(this.#highest, fence);
  }

  /** A key has a new owner, or all owners were read anew. */
  observe(key: string, { token, owner }: ClaimRecord): void {
    this.see(owner.fence);
    const leases = this.#leases.of(key);
    for (const lease of leases) {
      if (lease.token !== token && owner.fence > lease.fence) this.#lose(lease, owner);
    }
    const isOwn = owner.incarnation === this.#options.self.incarnation;
    const isKnown =
      this.#asked.has(token) || this.#abandoned.has(token) || leases.some((lease) => lease.token === token);
    if (isOwn && !isKnown) {
      // given up here, and back with an older state of Redis, or by a command that came after its time
      this.#abandoned.add({ key, token });
      void this.#reportAbandoned();
    }
  }

  /** The former owner of a key has stopped using it. */
  yielded(token: string): void {
    this.#waiting.get(token)?.();
  }

  /** Releases everything that is held. @throws UnavailableError */
  async close(): Promise<void> {
    this.#ends.close();
    const leases = [...this.#leases].filter(({ waits }) => !waits);
    this.#leases.clear();
    await Promise.all(leases.map((lease) => lease.release()));
  }

  get #validity(): number {
    return validity(this.#options.timing);
  }

  /**
   * Call it before Redis is asked for a key that this node does not hold validly. The result says afterwards whether the
   * key may be held: not if another node continues with it because of a promise of this node, given before or meanwhile.
   */
  #unlessPromised(): () => boolean {
    const promised = this.#options.promised();
    const isFree = performance.now() >= promised;
    return () => isFree && this.#options.promised() === promised;
  }

  #add(start: ConstructorParameters<typeof RedisLease>[0]): RedisLease {
    const lease = new RedisLease(start, this.#keeper);
    this.#leases.add(lease);
    const onLoss = (): void => {
      this.#leases.delete(lease);
      // one that has not begun has to wait for the end of the lease before it
      if (!lease.waits) this.#yield(lease);
    };
    lease.signal.addEventListener('abort', onLoss, { once: true });
    if (start.options.silence === 'stop') this.#ends.watch(start.validUntil);
    return lease;
  }

  /** A lease that was taken from another begins when that one has ended. */
  async #untilYielded(
    lease: RedisLease,
    { token, leftMs }: { readonly token: string; readonly leftMs: number },
  ): Promise<void> {
    const own = this.#leases.of(lease.key).find((other) => other.token === token);
    if (own !== undefined) this.#lose(own, { ...this.#options.self, fence: lease.fence, meta: lease.meta });
    if (own === undefined || own.waits) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#waiting.set(token, () => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    this.#waiting.delete(token);
    lease.begin();
    if (lease.ended) this.#yield(lease);
  }

  async #ask(request: ClaimRequest): Promise<ClaimAnswer> {
    const answer = await requestClaim(this.#options, request, this.#highest);
    if (answer !== undefined && 'fence' in answer) this.see(answer.fence);
    return answer;
  }

  /** @param renew called for what Redis has */
  async #find(leases: readonly RedisLease[], renew: (lease: RedisLease) => void): Promise<void> {
    const { connection, timing } = this.#options;
    const args = leases.flatMap(({ key, token }) => [key, token]);
    const replies = (await connection.run(SCRIPTS.confirm, [timing.ttl, ...args])) as (number | string)[];
    await Promise.all(
      leases.map(async (lease, at) => {
        const reply = replies[at];
        if (lease.ended) return;
        if (typeof reply === 'string') {
          this.#loseTo(lease, parseClaim(reply)?.owner);
          lease.remake();
        } else if (reply === 1 && !lease.isRemade) {
          renew(lease);
        } else await this.#claimAnew(lease);
      }),
    );
  }

  /** Writes what Redis may not have. */
  async #writePending(leases: readonly RedisLease[]): Promise<void> {
    const pending = leases.flatMap((lease) =>
      lease.pending === undefined || this.#writing.has(lease) ? [] : { lease, values: lease.pending },
    );
    for (let at = 0; at < pending.length; at += BATCH) {
      const batch = pending.slice(at, at + BATCH).filter(({ lease }) => !lease.ended);
      const replies = await this.#write(batch);
      batch.forEach(({ lease, values }, index) => {
        const reply = replies[index];
        if (reply === 1) lease.written(values);
        else if (reply === 0) lease.remake();
        else this.#loseTo(lease, parseClaim(reply as string)?.owner);
      });
    }
  }

  /** Makes a claim again that Redis has lost, or did not have yet, if nobody else has made one. */
  async #claimAnew(lease: RedisLease): Promise<void> {
    const { key, token, meta, options, kept } = lease;
    const sent = performance.now();
    const mayHold = this.#unlessPromised();
    lease.remake();
    if (!lease.valid && !mayHold()) return;
    const before = lease.fence === 0 ? 'none' : lease.valid ? 'valid' : 'lapsed';
    // if another node has it by now it is lost, whatever the options of the claim were
    const answer = await this.#ask({ key, token, meta, options: { ...options, take: false }, before, kept });
    if (answer === undefined) return;
    if ('owner' in answer) return this.#loseTo(lease, answer.owner);
    // it is tried again when the promise is over
    if (!lease.ended && !lease.valid && !mayHold()) return;
    lease.extend(sent + this.#validity, answer.fence);
    if (lease.ended) this.#yield(lease);
  }

  async #writeOne(lease: RedisLease, values: LeaseValues): Promise<void> {
    let reply: number | string | undefined;
    this.#writing.add(lease);
    try {
      const writing = this.#writes.add({ lease, values });
      // others wait for it
      if (values.meta !== undefined) this.#writes.flush();
      reply = await writing;
    } finally {
      this.#writing.delete(lease);
    }
    // a lease that was lost or released since must not come back
    if (reply === 0 && !lease.ended) {
      await this.#claimAnew(lease);
      [reply] = await this.#write([{ lease, values }]);
    }
    if (typeof reply === 'string') this.#loseTo(lease, parseClaim(reply)?.owner);
    if (lease.signal.aborted) throw lease.signal.reason;
    if (reply !== 1) throw new UnavailableError(`the lease of ${lease.key} is not confirmed yet`);
    lease.written(values);
  }

  /** @returns for each 1 when it is written, 0 when the key has no owner, or the record of its owner */
  async #write(written: readonly PendingWrite[]): Promise<readonly (number | string)[]> {
    const text = (value: Json | undefined): string => (value === undefined ? '' : JSON.stringify(value));
    const args = written.flatMap(({ lease: { key, token }, values: { meta, kept } }) => [
      key,
      token,
      text(meta),
      text(kept),
    ]);
    return (await this.#options.connection.run(SCRIPTS.values, args)) as (number | string)[];
  }

  async #release(lease: RedisLease): Promise<void> {
    this.#leases.delete(lease);
    // what it wrote last comes before its end
    this.#writes.flush();
    this.#giveUp(lease);
    await this.#reportAbandoned();
  }

  #giveUp(lease: RedisLease): void {
    this.#abandoned.add(lease, { isUnsure: lease.isRemade });
  }

  /**
   * Deletes a claim that may have been made. A claim that took a key stays until the time of the former owner is over: the former
   * owner may act on it, and until then no other node may claim it.
   */
  #abandon(key: string, token: string, options: ClaimOptions): void {
    const from = options.take ? performance.now() + this.#options.timing.ttl : -Infinity;
    this.#abandoned.add({ key, token }, { isUnsure: true, from });
  }

  /** Redis says that a key is another's: of an earlier claim than the lease it says so only because it is behind. */
  #loseTo(lease: RedisLease, owner: Owner | undefined): void {
    if (owner === undefined || owner.fence > lease.fence) this.#lose(lease, owner);
  }

  #lose(lease: RedisLease, owner: Owner | undefined): void {
    lease.lose(`${lease.key} is held by ${owner?.id ?? 'another node'}`, owner);
  }

  /** Announces that a lease has stopped, for a node that may wait for it. */
  #yield(lease: RedisLease): void {
    this.#giveUp(lease);
    void this.#reportAbandoned();
  }

  #expire(): void {
    for (const lease of this.#leases) lease.expire();
  }

  /** Signals losses in time, whatever Redis does. */
  #onEnd(): void {
    this.#expire();
    for (const { options, validUntil } of this.#leases) if (options.silence === 'stop') this.#ends.watch(validUntil);
  }
}

/** The part of a basis that distinguishes states of Redis and incarnations of this node. The rest is about lost claims. */
function stateOf(basis: string): string {
  return basis.slice(0, basis.lastIndexOf(':'));
}
