import type { Finish, NodeRecord, TakenRecord } from './types.ts';

/** Finished records that are kept; the oldest are forgotten first. */
const MOST_FINISHED = 100_000;

/** Records in memory, as `RecordStore` describes them. */
export class RecordTable {
  readonly #records = new Map<string, NodeRecord>();
  readonly #finished = new Set<string>();

  /** @param incarnation of the node that takes them */
  put(incarnation: string, records: readonly TakenRecord[]): boolean[] {
    return records.map(({ id, value }) => {
      if (this.#finished.has(id)) return false;
      const kept = value ?? this.#records.get(id)?.value;
      if (kept !== undefined) this.#records.set(id, { id, incarnation, value: kept });
      return true;
    });
  }

  /** @param self incarnation of the node that finishes them */
  finish(self: string, records: readonly Pick<NodeRecord, 'id' | 'incarnation'>[]): Finish[] {
    return records.map(({ id, incarnation }) => {
      const record = this.#records.get(id);
      if (this.#finished.has(id) || (record?.incarnation ?? self) !== incarnation) return undefined;
      this.#records.delete(id);
      this.#finished.add(id);
      if (this.#finished.size > MOST_FINISHED) this.#finished.delete(this.#finished.values().next().value as string);
      return { value: record?.value };
    });
  }

  list(): NodeRecord[] {
    return [...this.#records.values()];
  }
}
