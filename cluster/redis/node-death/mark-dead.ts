import type { NodeIdentity } from '../../types.ts';
import type { Connection } from '../connection.ts';
import type { Leases } from '../leases/leases.ts';
import { SCRIPTS } from '../scripts.ts';
import type { Timing } from '../timing.ts';

export interface MarkDeadOptions {
  readonly connection: Connection;
  readonly timing: Timing;
  readonly leases: Leases;
  /** Called when Redis has taken the node out, before all its claims are free. */
  readonly onMarkedDead: (node: NodeIdentity) => void;
}

/**
 * Marks a node dead whose port refuses connections, if Redis knows that its process has ended. Its claims become free.
 * @returns false when Redis does not know it
 * @throws UnavailableError
 */
export async function markDead(
  { connection, timing, leases, onMarkedDead }: MarkDeadOptions,
  { id, incarnation }: NodeIdentity,
): Promise<boolean> {
  const node = encodeURIComponent(id);
  const outcome = await connection.run(SCRIPTS.markDead, [node, incarnation, timing.ttl, leases.highest]);
  if (outcome === 'dead') onMarkedDead({ id, incarnation });
  return outcome !== 'alive';
}
