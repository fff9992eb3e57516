import type { NodeIdentity } from '../types.ts';
import type { ClaimTable } from './claim-table.ts';
import type { Connection } from './connection.ts';
import type { Leases } from './leases.ts';
import { SCRIPTS } from './scripts.ts';
import type { Timing } from './timing.ts';

/** Claims that are freed in one step: others wait for Redis meanwhile. */
const BATCH = 300;

export interface BurialOptions {
  readonly connection: Connection;
  readonly timing: Timing;
  readonly table: ClaimTable;
  readonly leases: Leases;
  /** Called when Redis has taken the node out, before all its claims are free. */
  readonly onBuried: (node: NodeIdentity) => void;
}

/**
 * Takes a node out of the cluster whose port refuses connections, if Redis knows that its process has ended. What it
 * had is free then.
 * @returns false when Redis does not know it
 * @throws UnavailableError
 */
export async function bury(
  { connection, timing, table, leases, onBuried }: BurialOptions,
  { id, incarnation }: NodeIdentity,
): Promise<boolean> {
  const keys = [...table.list('')].flatMap(([key, owner]) =>
    owner.id === id && owner.incarnation === incarnation ? [key] : [],
  );
  for (let at = 0; at === 0 || at < keys.length; at += BATCH) {
    const outcome = await connection.run(SCRIPTS.bury, [
      encodeURIComponent(id),
      incarnation,
      timing.ttl,
      leases.highest,
      ...keys.slice(at, at + BATCH),
    ]);
    if (outcome !== 'buried') return outcome === 'gone';
    if (at === 0) onBuried({ id, incarnation });
  }
  return true;
}
