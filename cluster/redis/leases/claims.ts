import type { Claim, ClaimOptions, Json } from '../../types.ts';
import type { ClaimRecord } from '../record.ts';
import { validity } from '../timing.ts';
import type { AbandonedClaims } from './abandoned-claims.ts';
import { requestClaim, type Claimant, type ClaimAnswer, type ClaimRequest } from './claim-request.ts';
import type { HandOver } from './handover.ts';
import { RedisLease, type LeaseKeeper } from './lease.ts';
import type { Leases } from './leases.ts';

export interface ClaimsOptions extends Claimant {
  readonly leases: Leases;
  readonly abandoned: AbandonedClaims;
  readonly handOver: HandOver;
  readonly keeper: LeaseKeeper;
  /** Latest claim of a key known to this node. */
  readonly latest: (key: string) => ClaimRecord | undefined;
  /** Until when this node has promised others to claim nothing new, on the monotonic clock. */
  readonly promisedUntil: () => number;
}

/** Takes keys for this node, and takes them again where Redis has lost the claim. */
export class Claims {
  readonly #options: ClaimsOptions;

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /**
   * @returns undefined when this node has promised since then to claim nothing, and while only previous holders may claim
   * @throws UnavailableError
   */
  async claim(key: string, token: string, meta: Json, options: ClaimOptions): Promise<Claim | undefined> {
    const answered = this.#options.leases.expect(token);
    try {
      return await this.#claim(key, token, meta, options);
    } finally {
      answered();
    }
  }

  async #claim(key: string, token: string, meta: Json, options: ClaimOptions): Promise<Claim | undefined> {
    const { self, leases, handOver, latest } = this.#options;
    const sent = performance.now();
    const mayHold = this.promiseCheck();
    let answer: ClaimAnswer;
    try {
      answer = await this.#request({ key, token, meta, options, before: 'none' });
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
    const validUntil = sent + this.#validity;
    const lease = this.#hold({ key, token, fence, inherited, meta, validUntil, options, waits: taken !== undefined });
    // an earlier one of this node's, too, that Redis has lost
    leases.observe(key, { token, owner: { ...self, fence, meta } });
    const known = latest(key);
    if (known !== undefined) leases.observe(key, known);
    if (taken !== undefined) await handOver.await(lease, taken);
    return { lease };
  }

  /** Holds a key that Redis is yet to confirm: the lease is not valid until then. */
  holdUnconfirmed(key: string, token: string, meta: Json, options: ClaimOptions): RedisLease {
    return this.#hold({
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

  /** Makes a claim again that Redis has lost, or makes it that Redis did not have yet, unless another node has made one. */
  async restore(lease: RedisLease): Promise<void> {
    const { leases, abandoned } = this.#options;
    const { key, token, meta, options, kept } = lease;
    const sent = performance.now();
    const mayHold = this.promiseCheck();
    lease.markMissing();
    if (!lease.valid && !mayHold()) return;
    const before = lease.fence === 0 ? 'none' : lease.valid ? 'valid' : 'lapsed';
    // if another node has it by now it is lost, whatever the options of the claim were
    const answer = await this.#request({ key, token, meta, options: { ...options, take: false }, before, kept });
    if (answer === undefined) return;
    if ('owner' in answer) return leases.loseTo(lease, answer.owner);
    // it is tried again when the promise is over
    if (!lease.ended && !lease.valid && !mayHold()) return;
    lease.extend(sent + this.#validity, answer.fence);
    if (lease.ended) void abandoned.end(lease);
  }

  /**
   * Call it before Redis is asked for a key that this node does not hold validly. The result says afterwards whether the
   * key may be held: not if another node continues with it because of a promise of this node, given before or since then.
   */
  promiseCheck(): () => boolean {
    const { promisedUntil } = this.#options;
    const promised = promisedUntil();
    const isFree = performance.now() >= promised;
    return () => isFree && promisedUntil() === promised;
  }

  get #validity(): number {
    return validity(this.#options.timing);
  }

  #hold(start: ConstructorParameters<typeof RedisLease>[0]): RedisLease {
    const lease = new RedisLease(start, this.#options.keeper);
    this.#options.leases.add(lease);
    return lease;
  }

  async #request(request: ClaimRequest): Promise<ClaimAnswer> {
    const { leases } = this.#options;
    const answer = await requestClaim(this.#options, request, leases.highest);
    if (answer !== undefined && 'fence' in answer) leases.see(answer.fence);
    return answer;
  }

  /**
   * Deletes a claim that may have been made. A claim that took a key stays until the time of the former owner is over: the former
   * owner may act on it, and until then no other node may claim it.
   */
  #abandon(key: string, token: string, options: ClaimOptions): void {
    const { abandoned, timing } = this.#options;
    const from = options.take ? performance.now() + timing.ttl : -Infinity;
    abandoned.add({ key, token }, { isUnsure: true, from });
  }
}
