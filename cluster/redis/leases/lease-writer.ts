import { UnavailableError } from '../../errors.ts';
import type { Json } from '../../types.ts';
import { Batch } from '../batch.ts';
import type { Connection } from '../connection.ts';
import { parseClaim } from '../record.ts';
import { SCRIPTS } from '../scripts.ts';
import type { AbandonedClaims } from './abandoned-claims.ts';
import type { LeaseKeeper, LeaseValues, RedisLease } from './lease.ts';
import type { Leases } from './leases.ts';

/** Leases that are written in one step: other clients of Redis wait that long. */
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

export interface LeaseWriterOptions {
  readonly connection: Connection;
  readonly leases: Leases;
  readonly abandoned: AbandonedClaims;
  /** Makes a claim again that Redis has lost. @throws UnavailableError */
  readonly restore: (lease: RedisLease) => Promise<void>;
}

/** Writes values of leases to Redis, and their end. */
export class LeaseWriter implements LeaseKeeper {
  readonly #options: LeaseWriterOptions;
  readonly #writes = new Batch((written: readonly PendingWrite[]) => this.#send(written), {
    waitMs: KEEP_WAIT_MS,
    most: BATCH,
  });
  /** Leases of which something is being written, or waits for others. */
  readonly #writing = new Set<RedisLease>();

  constructor(options: LeaseWriterOptions) {
    this.#options = options;
  }

  async write(lease: RedisLease, values: LeaseValues): Promise<void> {
    const { leases, restore } = this.#options;
    let reply: number | string | undefined;
    this.#writing.add(lease);
    try {
      const writing = this.#writes.add({ lease, values });
      // other nodes wait for it
      if (values.meta !== undefined) this.#writes.flush();
      reply = await writing;
    } finally {
      this.#writing.delete(lease);
    }
    // a lease that was lost or released since must not come back
    if (reply === 0 && !lease.ended) {
      await restore(lease);
      [reply] = await this.#send([{ lease, values }]);
    }
    if (typeof reply === 'string') leases.loseTo(lease, parseClaim(reply)?.owner);
    if (lease.signal.aborted) throw lease.signal.reason;
    if (reply !== 1) throw new UnavailableError(`the lease of ${lease.key} is not confirmed yet`);
    lease.written(values);
  }

  /** Writes the values of these leases that Redis may lack. @throws UnavailableError */
  async writePending(of: readonly RedisLease[]): Promise<void> {
    const pending = of.flatMap((lease) =>
      lease.pending === undefined || this.#writing.has(lease) ? [] : { lease, values: lease.pending },
    );
    for (let at = 0; at < pending.length; at += BATCH) {
      const batch = pending.slice(at, at + BATCH).filter(({ lease }) => !lease.ended);
      const replies = await this.#send(batch);
      batch.forEach(({ lease, values }, index) => {
        const reply = replies[index];
        if (reply === 1) lease.written(values);
        else if (reply === 0) lease.markMissing();
        else this.#options.leases.loseTo(lease, parseClaim(reply as string)?.owner);
      });
    }
  }

  async release(lease: RedisLease): Promise<void> {
    const { leases, abandoned } = this.#options;
    leases.delete(lease);
    // its last values come before its end
    this.#writes.flush();
    await abandoned.end(lease);
  }

  /** @returns for each 1 when it is written, 0 when the key has no owner, or the record of its owner */
  async #send(writes: readonly PendingWrite[]): Promise<readonly (number | string)[]> {
    const text = (value: Json | undefined): string => (value === undefined ? '' : JSON.stringify(value));
    const args = writes.flatMap(({ lease: { key, token }, values: { meta, kept } }) => [
      key,
      token,
      text(meta),
      text(kept),
    ]);
    return (await this.#options.connection.run(SCRIPTS.values, args)) as (number | string)[];
  }
}
