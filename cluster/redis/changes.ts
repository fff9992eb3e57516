import { pairs } from './record.ts';

/** Changes of a table of Redis since a revision; the whole table when `full`. An entry '' is removed. */
export interface TableChanges {
  readonly revision: number;
  readonly full: boolean;
  readonly entries: readonly (readonly [key: string, text: string])[];
}

/** An answer of lua/pull.lua. */
/** Answer of lua/pull.lua with the changes of a table. */
export type TableReply = readonly [revision: string, full: number, entries: readonly string[]];

/** One part of the answer to a pull of claims. */
export interface ClaimChanges {
  /** The last change that it includes; while everything is being read, the one at which that began. */
  readonly revision: number;
  /** `all`: the first part of all claims; `more`: a further part; `changed`: changes alone; `nothing`: Redis is being restored. */
  readonly kind: 'all' | 'more' | 'changed' | 'nothing';
  /** One that is '' is removed. */
  readonly entries: readonly (readonly [key: string, text: string])[];
  /** Cursor of the next part; '' when there is none. */
  readonly cursor: string;
}

/** An answer of lua/pull.lua. */
export type ClaimsReply = readonly [
  revision: string,
  kind: ClaimChanges['kind'],
  entries: readonly string[],
  cursor: string,
];

/** An epoch of the configuration in Redis, in which each revision means one thing, and what it continues. */
export interface ConfigEpoch {
  readonly id: number;
  /** The epoch before it; 0 when there is none. */
  readonly from: number;
  /** Up to which revision of that one Redis has had it. */
  readonly revision: number;
}

/** @param storeId what an epoch goes by that nodes of an earlier version have opened */
export function parseEpoch(text: string, storeId: number): ConfigEpoch {
  const [id = storeId, from = 0, revision = 0] = text === '' ? [] : text.split(' ').map(Number);
  return { id, from, revision };
}

export function parseChanges([revision, full, entries]: TableReply): TableChanges {
  return { revision: Number(revision), full: full === 1, entries: pairs(entries) };
}

export function parseClaims([revision, kind, entries, cursor]: ClaimsReply): ClaimChanges {
  return { revision: Number(revision), kind, entries: pairs(entries), cursor };
}

/** A published change of one claim (lua/prelude.lua), and the revision that it follows. */
export interface ClaimMessage {
  readonly before: number;
  readonly changes: ClaimChanges;
}

/** @returns undefined for a message about something else */
export function parseClaimMessage(message: string): ClaimMessage | undefined {
  const [, before, revision, record = '', key] = /^claim (\d+) (\d+) ([^\n]*)\n(.*)$/s.exec(message) ?? [];
  if (key === undefined) return undefined;
  const entries = [[key, record] as const];
  return { before: Number(before), changes: { revision: Number(revision), kind: 'changed', entries, cursor: '' } };
}
