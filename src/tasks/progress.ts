import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';

export const ProgressSchema = Type.Object({
  /** Uid of the definition: a task that is created again under the same id starts without progress. */
  uid: Type.String(),
  /** Fence of the owner that wrote it. */
  fence: Type.Number(),
  /** Number of the write among those of its owner. */
  step: Type.Number(),
  value: Type.Unknown(),
  /** Whether the task is complete: nothing is left to do but to delete its definition. */
  over: Type.Optional(Type.Boolean()),
});

/**
 * Point from which the next run of a task continues. Of two, progress of a complete task is newer, since that does not become
 * incomplete again; then the one with the higher fence, then the one with the higher step.
 */
export interface TaskProgress extends Omit<Static<typeof ProgressSchema>, 'value'> {
  /** The data of the kind of task. */
  readonly value: Json;
}

/** @returns undefined when it is missing, of another definition, or written by a node of another version */
export function readProgress(json: Json | undefined, uid: string): TaskProgress | undefined {
  const isProgress = Value.Check(ProgressSchema, json) && json.uid === uid;
  return isProgress ? (json as TaskProgress) : undefined;
}

export function isNewer(one: TaskProgress, other: TaskProgress | undefined): boolean {
  if (other === undefined) return true;
  if ((one.over === true) !== (other.over === true)) return one.over === true;
  return one.fence > other.fence || (one.fence === other.fence && one.step > other.step);
}

/** The newest of those that exist. */
export function newest(...all: readonly (TaskProgress | undefined)[]): TaskProgress | undefined {
  let best: TaskProgress | undefined;
  for (const progress of all) if (progress !== undefined && isNewer(progress, best)) best = progress;
  return best;
}
