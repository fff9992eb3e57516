import { pairs } from './record.ts';

/** What changed of a table of Redis since a revision; all of it when `full`. An entry '' is removed. */
export interface TableChanges {
  readonly revision: number;
  readonly full: boolean;
  readonly entries: readonly (readonly [key: string, text: string])[];
}

/** The same as lua/pull.lua answers it. */
export type TableReply = readonly [revision: string, full: number, entries: readonly string[]];

export function parseChanges([revision, full, entries]: TableReply): TableChanges {
  return { revision: Number(revision), full: full === 1, entries: pairs(entries) };
}
