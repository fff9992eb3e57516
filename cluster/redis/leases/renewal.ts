import { parseClaim } from '../record.ts';
import type { Beat } from '../nodes.ts';
import { SCRIPTS } from '../scripts.ts';
import { validity } from '../timing.ts';
import type { AbandonedClaims } from './abandoned-claims.ts';
import type { Claimant } from './claim-request.ts';
import type { Claims } from './claims.ts';
import type { LeaseWriter } from './lease-writer.ts';
import type { RedisLease } from './lease.ts';
import type { Leases } from './leases.ts';

/** Leases that are looked up in one step: other clients of Redis wait that long. */
const BATCH = 500;

export interface RenewalOptions extends Pick<Claimant, 'connection' | 'timing'> {
  readonly leases: Leases;
  readonly claims: Claims;
  readonly writer: LeaseWriter;
  readonly abandoned: AbandonedClaims;
}

/** Renews all leases of this node with each beat, and restores claims that Redis has lost. */
export class Renewal {
  readonly #options: RenewalOptions;
  /** Loss tag of the last beat after which Redis had every lease that need not be restored. */
  #lossTag = '';

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  /** Progress of restoring claims that Redis has lost: `0` a valid one is missing, `1` one that is not valid, `2` none. */
  get restored(): 0 | 1 | 2 {
    const missing = [...this.#options.leases].filter(({ isMissing, fence, ended }) => isMissing && fence > 0 && !ended);
    if (missing.length === 0) return 2;
    return missing.some(({ valid }) => valid) ? 0 : 1;
  }

  /**
   * Call it before a beat is sent, and the result when Redis has answered it. The beat renews what Redis has of this node:
   * where it may have lost something it is asked for each lease, and what is another's by now is lost.
   * The result throws UnavailableError when some may not be renewed.
   */
  expectBeat(): (beat: Pick<Beat, 'sentAt' | 'lossTag' | 'replaced'>) => Promise<void> {
    const { leases, claims, writer, abandoned, timing } = this.#options;
    const mayHold = claims.promiseCheck();
    return async ({ sentAt, lossTag, replaced }) => {
      leases.expire();
      // first, so that no lease meets the remains of an earlier attempt to claim its key
      await abandoned.report();
      if (replaced) return;
      const renew = (lease: RedisLease): void => {
        if (lease.valid || mayHold()) lease.extend(sentAt + validity(timing));
      };
      const present = [...leases];
      const unsure: RedisLease[] = [];
      // a claim that was lost says nothing of the others; another state of Redis may lack each of them
      const isOtherState = stateOf(this.#lossTag) !== stateOf(lossTag);
      for (const lease of present) {
        if (isOtherState) lease.repeatWrites();
        if (this.#lossTag !== lossTag || lease.isMissing || lease.fence === 0) unsure.push(lease);
        else renew(lease);
      }
      for (let at = 0; at < unsure.length; at += BATCH) await this.#confirm(unsure.slice(at, at + BATCH), renew);
      this.#lossTag = lossTag;
      await writer.writePending(present.filter(({ ended, isMissing, fence }) => !ended && !isMissing && fence > 0));
    };
  }

  /** @param renew called for what Redis has */
  async #confirm(unsure: readonly RedisLease[], renew: (lease: RedisLease) => void): Promise<void> {
    const { connection, timing, leases, claims } = this.#options;
    const args = unsure.flatMap(({ key, token }) => [key, token]);
    const replies = (await connection.run(SCRIPTS.confirm, [timing.ttl, ...args])) as (number | string)[];
    await Promise.all(
      unsure.map(async (lease, at) => {
        const reply = replies[at];
        if (lease.ended) return;
        if (typeof reply === 'string') {
          leases.loseTo(lease, parseClaim(reply)?.owner);
          lease.markMissing();
        } else if (reply === 1 && !lease.isMissing) {
          renew(lease);
        } else await claims.restore(lease);
      }),
    );
  }
}

/** The part of a loss tag that distinguishes states of Redis and incarnations of this node. The rest is about lost claims. */
function stateOf(lossTag: string): string {
  return lossTag.slice(0, lossTag.lastIndexOf(':'));
}
