import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';

export const ProgressSchema = Type.Object({
  /** Of the definition: a task that is made anew under the same id starts from nothing. */
  uid: Type.String(),
  /** Of the owner that kept it. */
  fence: Type.Number(),
  /** Counts what one owner keeps. */
  step: Type.Number(),
  value: Type.Unknown(),
});

/** What the next run of a task continues from. Of two the one of the later owner counts, and of one owner the last. */
export interface Progress extends Omit<Static<typeof ProgressSchema>, 'value'> {
  /** What the kind of tasks makes of it. */
  readonly value: Json;
}

/** undefined for what is not there, is of another definition, or was left by a node of another version. */
export function readProgress(json: Json | undefined, uid: string): Progress | undefined {
  const isProgress = Value.Check(ProgressSchema, json) && json.uid === uid;
  return isProgress ? (json as Progress) : undefined;
}

export function isNewer(one: Progress, other: Progress | undefined): boolean {
  if (other === undefined) return true;
  return one.fence > other.fence || (one.fence === other.fence && one.step > other.step);
}

/** The newest of those that are there. */
export function newest(...all: readonly (Progress | undefined)[]): Progress | undefined {
  let best: Progress | undefined;
  for (const progress of all) if (progress !== undefined && isNewer(progress, best)) best = progress;
  return best;
}
