import type { NodeIdentity } from '../../types.ts';
import type { AbandonedClaims } from './abandoned-claims.ts';
import type { FormerClaim } from './claim-request.ts';
import type { RedisLease } from './lease.ts';
import type { Leases } from './leases.ts';

export interface HandOverOptions {
  readonly self: NodeIdentity;
  readonly leases: Leases;
  readonly abandoned: AbandonedClaims;
}

/** Has a lease that was taken from another holder begin when that one has stopped, or its time is over. */
export class HandOver {
  readonly #options: HandOverOptions;
  /** Called when the holder of a claim has stopped, by the token of that. */
  readonly #waiting = new Map<string, () => void>();

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  /** Resolves when the lease has begun, or has ended itself. */
  async await(lease: RedisLease, { token, leftMs }: FormerClaim): Promise<void> {
    const { self, leases, abandoned } = this.#options;
    const own = leases.of(lease.key).find((other) => other.token === token);
    if (own !== undefined) leases.lose(own, { ...self, fence: lease.fence, meta: lease.meta });
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
    if (lease.ended) void abandoned.end(lease);
  }

  /** The holder of a claim has stopped (message `yielded`). */
  stopped(token: string): void {
    this.#waiting.get(token)?.();
  }
}
