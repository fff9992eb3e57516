export interface Counted {
  readonly msn: number;
  readonly parts: number;
}

/** Newest state of a chunklist. At least one of `newest` and `open` is set. */
export interface Position {
  /** Newest complete segment; a gap has no parts. */
  readonly newest?: Counted;
  /** Growing segment, if it has parts. */
  readonly open?: Counted;
  /** Seconds. */
  readonly partTarget: number;
  /** Nothing follows, so this position answers every request. */
  readonly ended?: boolean;
}

/** Segments, and with short parts parts, that a player may ask ahead (RFC 8216bis 6.2.5.2). */
const MAX_SEGMENTS_AHEAD = 2;
const PARTS_AHEAD_SECONDS = 3;
const MIN_PARTS_AHEAD = 3;
/** Longest parts, in seconds, of which one comes soon. */
const SOON_SECONDS = 2;

/** Tests whether the chunklist has a complete segment, or with `part` that part, or anything later. */
export function has({ newest, open, ended }: Position, msn: number, part?: number): boolean {
  if (ended === true) return true;
  if (newest !== undefined && msn <= newest.msn) {
    // beyond a segment's final part, part 0 of the next segment is meant (RFC 8216bis 6.2.5.2)
    const beyond = part !== undefined && msn === newest.msn && newest.parts > 0 && part >= newest.parts;
    return !beyond || open !== undefined;
  }
  return part !== undefined && open?.msn === msn && part < open.parts;
}

/**
 * Tests whether the chunklist ends with the part or segment that a player named: a player that has it names something else next.
 * A chunklist that ends with a complete segment does not count for requests with a part: video.js names the last part of that
 * segment again, or part 0 of it, when it wants the next one.
 */
export function endsWith({ newest, open }: Position, msn: number, part?: number): boolean {
  if (part === undefined) return newest?.msn === msn;
  if (open === undefined) return false;
  if (msn === open.msn) return part === open.parts - 1;
  return msn === newest?.msn && part >= newest.parts && newest.parts > 0 && open.parts === 1;
}

export function tooFar(position: Position, msn: number, part: number | undefined): boolean {
  const { partTarget } = position;
  const last = lastOf(position);
  if (msn > last.msn + MAX_SEGMENTS_AHEAD) return true;
  if (part === undefined || msn < last.msn) return false;
  const ahead = Math.max(MIN_PARTS_AHEAD, partTarget < 1 ? Math.ceil(PARTS_AHEAD_SECONDS / partTarget) : 0);
  return part > (msn === last.msn ? last.part : 0) + ahead;
}

/** Tests whether a part that the chunklist does not have yet is the next one, and comes soon as long as media comes. */
export function isDueSoon(position: Position, msn: number, part: number | undefined): boolean {
  if (part === undefined || position.partTarget > SOON_SECONDS) return false;
  const last = lastOf(position);
  return msn === last.msn ? part === last.part + 1 : msn === last.msn + 1 && part === 0;
}

export function lastOf({ newest, open }: Position): { readonly msn: number; readonly part: number } {
  const { msn, parts } = open ?? newest ?? { msn: 0, parts: 0 };
  return { msn, part: Math.max(0, parts - 1) };
}

/** Differs between positions that differ. */
export function markOf({ newest, open, ended }: Position): string {
  return `${newest?.msn ?? ''}.${open?.msn ?? ''}.${open?.parts ?? ''}${ended === true ? '.end' : ''}`;
}
