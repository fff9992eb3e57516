import { ConflictError, type Change, type ConfigEntry, type Expectation } from '#cluster';
import { isWithin } from '../../../cluster/keys.ts';

/** The configuration at a revision. It is never changed: each write makes the next. */
export interface ConfigState {
  readonly entries: ReadonlyMap<string, ConfigEntry>;
  readonly revision: number;
  /** Keys that each write changed, by its revision. */
  readonly log: readonly { readonly revision: number; readonly keys: readonly string[] }[];
}

export const EMPTY_CONFIG: ConfigState = { entries: new Map(), revision: 0, log: [] };

/** @throws ConflictError */
export function written(
  state: ConfigState,
  changes: readonly Change[],
  expected: readonly Expectation[] = [],
): ConfigState {
  const entries = new Map(state.entries);
  const revision = state.revision + 1;
  const keys = new Set<string>();
  for (const { key, seen } of [...expected, ...changes]) {
    const present = state.entries.get(key)?.revision ?? 0;
    if (present !== seen) throw new ConflictError(`${key} is at revision ${present}, not ${seen}`);
  }
  for (const { key, value } of changes) {
    keys.add(key);
    if (value !== undefined) entries.set(key, { value, revision });
    else for (const other of [...entries.keys()]) if (isWithin(other, key) && entries.delete(other)) keys.add(other);
  }
  return { entries, revision, log: [...state.log, { revision, keys: [...keys] }] };
}
