import type { Finish, NodeRecord, RecordStore, TakenRecord } from '../types.ts';
import { RecordTable } from '../record-table.ts';

/** Records of a node that runs alone. They end with it. */
export class EmbeddedRecords implements RecordStore {
  readonly #incarnation: string;
  readonly #table = new RecordTable();

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  async put(records: readonly TakenRecord[]): Promise<readonly boolean[]> {
    return this.#table.put(this.#incarnation, records);
  }

  async finish(records: readonly Pick<NodeRecord, 'id' | 'incarnation'>[]): Promise<readonly Finish[]> {
    return this.#table.finish(this.#incarnation, records);
  }

  async *pages(): AsyncIterable<readonly NodeRecord[]> {
    yield this.#table.list();
  }
}
