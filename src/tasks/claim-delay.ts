import { ranked, type Cluster, type Owner } from '#cluster';
import type { Registry } from '../core/registry.ts';
import { taskKey, type TaskDefinition, type TaskName } from './definition.ts';
import type { TaskDefinitions } from './definitions.ts';
import type { Fitness } from './fitness.ts';
import { isStreamKind, type TaskKind } from './kind.ts';
import { applicationConfigOf } from './own-application.ts';

/** How much later than the one before it each node of the ranking claims a task without an owner. */
export const STEP_MS = 300;
/** How much later than the last of them a node claims it that lacks what the task needs. */
const UNSUITED_MS = 900;
/** An owner that was only cut off from the store has newer progress, and this time to come back with it. */
const RESCUE_MS = 5000;

interface ClaimDelayOptions {
  readonly cluster: Pick<Cluster, 'self' | 'state' | 'nodes'>;
  readonly registry: Registry;
  readonly definitions: TaskDefinitions;
  readonly kind: TaskKind;
  readonly fitness: Fitness;
}

/**
 * Time in milliseconds that a task is without an owner before this node claims it: all nodes rank each other for the task in
 * the same way, and the first one claims it at once. undefined if this node must not claim it.
 * @param former incarnation that has just lost or left the task: it would only delay the others
 */
export function claimDelay(
  { cluster, registry, definitions, kind, fitness }: ClaimDelayOptions,
  name: TaskName,
  definition: TaskDefinition,
  former: Owner | undefined,
): number | undefined {
  const order = ranked(taskKey(name), cluster.nodes(), former);
  const rank = order.indexOf(cluster.self.id);
  if (rank < 0) return undefined;
  if (definitions.isLeftOver(name, definition)) return rank * STEP_MS;
  if (isStreamKind(kind)) return rank * STEP_MS + RESCUE_MS;
  const application = applicationConfigOf(registry, name);
  if (application === undefined) return undefined;
  const isSuited = fitness.of(kind, definition.spec, application);
  return rank * STEP_MS + (isSuited ? 0 : (order.length - 1) * STEP_MS + UNSUITED_MS);
}
