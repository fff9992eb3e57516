import type { Finish, Json, NodeRecord, RecordStore, TakenRecord } from '../types.ts';
import type { Connection } from './connection.ts';
import { pairs } from './record.ts';
import { SCRIPTS } from './scripts.ts';

/** Records that one step takes: Redis serves everybody else in between. */
const BATCH = 100;
const PAGE = 200;

/** Records that outlive their node, in one hash of the cluster. */
export class RedisRecords implements RecordStore {
  readonly #incarnation: string;
  readonly #connection: Connection;
  readonly #onFault: (error: Error) => void;

  /** @param onFault called for malformed records, which no node can finish */
  constructor(incarnation: string, connection: Connection, onFault: (error: Error) => void) {
    this.#incarnation = incarnation;
    this.#connection = connection;
    this.#onFault = onFault;
  }

  async put(records: readonly TakenRecord[]): Promise<readonly boolean[]> {
    const rows = records.map(({ id, value }) => [id, value === undefined ? '' : JSON.stringify(value)] as const);
    const taken = (await this.#batches(SCRIPTS.recordPut, rows)) as number[];
    return taken.map((outcome) => outcome === 1);
  }

  async finish(records: readonly Pick<NodeRecord, 'id' | 'incarnation'>[]): Promise<readonly Finish[]> {
    const rows = records.map(({ id, incarnation }) => [id, incarnation] as const);
    const outcomes = (await this.#batches(SCRIPTS.recordFinish, rows)) as string[];
    return outcomes.map((outcome, at) => {
      if (outcome === '-') return undefined;
      return { value: outcome === '+' ? undefined : this.#parse(records[at]?.id ?? '', outcome.slice(1)) };
    });
  }

  async *pages(): AsyncIterable<readonly NodeRecord[]> {
    let cursor = '0';
    do {
      const page = (await this.#connection.run(SCRIPTS.recordPage, [cursor, PAGE])) as [string, string[]];
      cursor = page[0];
      yield pairs(page[1]).flatMap(([id, record]) => {
        const [, incarnation = '', json = ''] = /^(\S+) (.*)$/s.exec(record) ?? [];
        const value = this.#parse(id, json);
        return value === undefined ? [] : [{ id, incarnation, value }];
      });
    } while (cursor !== '0');
  }

  async #batches(script: (typeof SCRIPTS)['recordPut'], rows: readonly (readonly string[])[]): Promise<unknown[]> {
    const outcomes: unknown[] = [];
    for (let at = 0; at < rows.length; at += BATCH) {
      const batch = [this.#incarnation, ...rows.slice(at, at + BATCH).flat()];
      outcomes.push(...((await this.#connection.run(script, batch)) as unknown[]));
    }
    return outcomes;
  }

  #parse(id: string, json: string): Json | undefined {
    try {
      return JSON.parse(json) as Json;
    } catch {
      this.#onFault(new Error(`Redis: the record ${id} is malformed`));
      return undefined;
    }
  }
}
