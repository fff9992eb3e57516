import { coalesced } from '../../coalesce.ts';
import { UnavailableError } from '../../errors.ts';
import type { Connection } from '../connection.ts';
import { SCRIPTS } from '../scripts.ts';
import type { RedisLease } from './lease.ts';

/** Claims beyond this number are forgotten; they then last as long as this node. */
const MAX = 100_000;
/** Claims deleted in one step: other clients of Redis wait that long. */
const BATCH = 500;

interface Claim {
  readonly key: string;
  readonly token: string;
}

interface AbandonedClaim extends Claim {
  /** When Redis may delete it, on the monotonic clock. */
  readonly from: number;
  /** Redis may still make the claim: the deletion is repeated after a while. */
  readonly isUnsure: boolean;
}

/** Claims that have ended here, or that may have been made without an answer: they are deleted in Redis, with retries. */
export class AbandonedClaims {
  /** Reports; simultaneous calls share a run. If Redis is unreachable, the next beat reports again. */
  readonly reportSoon = coalesced(() =>
    this.report().catch((error: unknown) => {
      if (!(error instanceof UnavailableError)) throw error;
    }),
  );
  readonly #connection: Connection;
  readonly #againMs: number;
  #claims: AbandonedClaim[] = [];

  /** @param againMs after which Redis has made no claim any more that was sent before it answered something else */
  constructor(connection: Connection, againMs: number) {
    this.#connection = connection;
    this.#againMs = againMs;
  }

  /** @param from when Redis may delete it, on the monotonic clock */
  add({ key, token }: Claim, { isUnsure = false, from = -Infinity }: Partial<AbandonedClaim> = {}): void {
    this.#claims.push({ key, token, from, isUnsure });
  }

  /** Whether the claim of a token is still to be deleted. */
  has(token: string): boolean {
    return this.#claims.some((claim) => claim.token === token);
  }

  /** Has the claim of a lease deleted that has ended. A node that has taken its key, and waits for that, hears of it. */
  async end(lease: RedisLease): Promise<void> {
    this.add(lease, { isUnsure: lease.isMissing });
    await this.reportSoon();
  }

  /** @throws UnavailableError: call it again later */
  async report(): Promise<void> {
    const now = performance.now();
    const due = this.#claims.filter(({ from }) => from <= now);
    if (due.length === 0) return;
    this.#claims = this.#claims.filter(({ from }) => from > now);
    for (let at = 0; at < due.length; at += BATCH) {
      const batch = due.slice(at, at + BATCH);
      try {
        await this.#connection.run(
          SCRIPTS.release,
          batch.flatMap(({ key, token }) => [key, token]),
        );
        for (const claim of batch) if (claim.isUnsure) this.add(claim, { from: performance.now() + this.#againMs });
      } catch (error) {
        this.#claims = [...due.slice(at), ...this.#claims].slice(-MAX);
        throw error;
      }
    }
  }
}
