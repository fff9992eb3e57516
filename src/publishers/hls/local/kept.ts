import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Past, Progress } from '../../../packaging/past.ts';

/** A number that players are asked back by (`_HLS_msn`). */
const Count = Type.Integer({ minimum: 0, maximum: 1e14 });

/** What a stream keeps of its playlists for the one that continues it. */
const Kept = Type.Object({
  /** Of this stream and all that it continued: what their files are told apart by from others of the same name. */
  run: Type.String({ pattern: '^[A-Za-z0-9]{8}$' }),
  msn: Count,
  discontinuities: Count,
  /** By track id: the next version of an initialization. */
  inits: Type.Array(Type.Tuple([Type.Integer({ minimum: 0 }), Count])),
  /** It is all that there was: nothing came after it was kept. */
  complete: Type.Boolean(),
  /** When it was kept, in milliseconds since the epoch, by the clock of that node. */
  at: Type.Number({ minimum: 0, maximum: 1e15 }),
  /** Seconds that a segment lasts at least. */
  segmentDuration: Type.Number({ minimum: 0.1, maximum: 1e6 }),
  /** Sessions that were thrown out, as far as they are remembered. */
  kicked: Type.Array(Type.String({ maxLength: 128 })),
});
/** See its schema. */
export type Kept = Static<typeof Kept>;

/** Kept for playlists that were concluded: the next publisher does not continue them. */
export const CONCLUDED = {};

/** How many segments begin until they are kept, if they begin in time: each costs the store. */
export const SEGMENTS_PER_KEEP = 2;
/** Share of its duration that a segment may be early by. */
const JITTER = 0.1;
/** Segments that a node may have begun, and initializations, that time does not account for. */
const MARGIN = 3;
/**
 * Segments that players had, or could have, which stand in front of those as gaps, too. hls.js does not get on when what it has
 * buffered ends in front of a playlist that begins with gaps: it chooses one of them to start with, again and again.
 */
const LEADING = 3;
/** Beyond that players have given up, or begin anew. */
const MAX_GAPS = 100;
/** Sessions that were thrown out and stay out when another node goes on with the stream. */
const MAX_KICKED = 50;

/** undefined for what another version may have left. */
export function readKept(value: unknown): Kept | undefined {
  return Value.Check(Kept, value) ? value : undefined;
}

/** @returns undefined as long as there is nothing to continue */
export function toKept(
  run: string,
  progress: Progress,
  facts: Pick<Kept, 'complete' | 'at' | 'segmentDuration'>,
  kicked: Iterable<string>,
): Kept | undefined {
  const { msn, discontinuities, inits } = progress;
  if (msn < 0) return undefined;
  return {
    run,
    msn,
    discontinuities: Math.max(0, discontinuities),
    inits: [...inits],
    ...facts,
    kicked: [...kicked].slice(-MAX_KICKED),
  };
}

/**
 * Whether there is more to keep than before: that it is later is not enough, nor is the next segment, if it began in its time.
 * Whoever continues the stream counts it by that.
 */
export function isNews(one: Kept | typeof CONCLUDED, other: Kept | typeof CONCLUDED): boolean {
  const { at, msn } = one as Partial<Kept>;
  const expected = isInTime(one, other) ? { ...other, at, msn } : { ...other, at };
  return JSON.stringify(one) !== JSON.stringify(expected);
}

function isInTime(one: Partial<Kept>, { msn = 0, at = 0, segmentDuration = 0 }: Partial<Kept>): boolean {
  if (one.msn === undefined || one.at === undefined) return false;
  const segments = one.msn - msn;
  return segments < SEGMENTS_PER_KEEP && one.at - at >= segments * segmentDuration * 1000 * (1 - JITTER);
}

/**
 * Where a stream goes on that has none of the segments before. A node that could not reach the store, and has died since,
 * may have put out segments for as long as what it kept is old.
 * @param now milliseconds since the epoch
 */
export function nextOf(kept: Kept, now: number): { readonly msn: number; readonly past: Past } {
  const { msn, discontinuities, inits, complete, at, segmentDuration } = kept;
  const since = Math.ceil(Math.max(0, now - at) / (segmentDuration * 1000));
  const ahead = complete ? 0 : MARGIN + since;
  return {
    msn: msn + 1 + ahead,
    past: {
      discontinuities,
      inits: new Map(inits.map(([id, version]) => [id, version + ahead])),
      // the one that was growing, too: what players have of it is all there is
      gaps: complete ? 0 : Math.min(1 + ahead + Math.min(LEADING, msn), MAX_GAPS),
    },
  };
}
