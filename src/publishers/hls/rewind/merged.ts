import type { Elsewhere, Holder } from './elsewhere.ts';
import type { PastSegment } from './journal.ts';

/** Segments of a media playlist whose media another node has: numbers that follow each other. */
export interface Held {
  /** File name of the media playlist. */
  readonly list: string;
  readonly from: number;
  /** Number after the last one. */
  readonly to: number;
  readonly node: Holder;
}

/**
 * Merges the segments of a media playlist that this node and others have. Media counts before a gap, and that of this node before
 * that of others.
 * @returns segments by their numbers, and those whose media is elsewhere
 */
export function merged(
  own: readonly PastSegment[],
  others: readonly Elsewhere[],
  list: string,
): { readonly segments: readonly PastSegment[]; readonly held: readonly Held[] } {
  const best = new Map<number, { readonly segment: PastSegment; readonly node: Holder | undefined }>();
  const take = (segment: PastSegment, node: Holder | undefined): void => {
    const known = best.get(segment.msn);
    if (known === undefined || (known.segment.gap && !segment.gap)) best.set(segment.msn, { segment, node });
  };
  for (const segment of own) take(segment, undefined);
  for (const node of others) for (const segment of node.lists.get(list) ?? []) take(segment, node.holder);
  const sorted = [...best.values()].sort((one, other) => one.segment.msn - other.segment.msn);
  const held: Held[] = [];
  for (const { segment, node } of sorted)
    if (node !== undefined && !segment.gap) addHeld(held, list, segment.msn, node);
  return { segments: sorted.map(({ segment }) => segment), held };
}

/** Segments of all media playlists of a stream by their numbers, under one number those with media first. @param lists by the file name */
export function* byNumber(
  lists: ReadonlyMap<string, readonly PastSegment[]>,
): Generator<{ readonly list: string; readonly segment: PastSegment }> {
  const waiting = Array.from(lists, ([list, segments]) => ({ list, segments, at: 0 }));
  for (;;) {
    const heads = waiting.flatMap(({ segments, at }) => segments[at]?.msn ?? []);
    if (heads.length === 0) return;
    const msn = Math.min(...heads);
    const found = waiting.flatMap((one) => {
      const segment = one.segments[one.at];
      if (segment?.msn !== msn) return [];
      one.at++;
      return [{ list: one.list, segment }];
    });
    yield* found.sort((one, other) => Number(one.segment.gap) - Number(other.segment.gap));
  }
}

/** Adds the next segment that a node has. */
export function addHeld(held: Held[], list: string, msn: number, node: Holder): void {
  const last = held.at(-1);
  if (last?.list === list && last.node === node && last.to === msn) held[held.length - 1] = { ...last, to: msn + 1 };
  else held.push({ list, from: msn, to: msn + 1, node });
}
