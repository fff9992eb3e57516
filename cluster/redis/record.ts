import type { Json, Owner } from '../types.ts';

/** A claim as Redis has it (lua/prelude.lua). */
export interface ClaimRecord {
  readonly token: string;
  readonly owner: Owner;
}

/**
 * @param text `fence token node incarnation silence keep meta`
 * @returns undefined when it is malformed
 */
export function parseClaim(text: string): ClaimRecord | undefined {
  const [, fence, token, node = '', incarnation = '', json = ''] =
    /^(\d+) (\S+) (\S+) (\S+) \S+ \S+ (.*)$/s.exec(text) ?? [];
  if (token === undefined) return undefined;
  try {
    const meta = JSON.parse(json) as Json;
    return { token, owner: { id: decodeURIComponent(node), incarnation, fence: Number(fence), meta } };
  } catch {
    return undefined;
  }
}

/** The pairs of a flat list. */
export function pairs(list: readonly string[]): [string, string][] {
  return Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at] as string, list[2 * at + 1] as string]);
}

/** The id of a node as it is in keys and fields; undefined when it is malformed. */
export function parseId(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
