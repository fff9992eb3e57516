import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { SavedKey } from './key-rotation.ts';
import type { Resumption, PlaylistPosition } from '../../../packaging/playlist-position.ts';

const Count = Type.Integer({ minimum: 0, maximum: 1e14 });

/** Playlist state that a stream saves for the stream that continues it. */
const SavedPlaylistState = Type.Object({
  /** Key in file names of this stream and all that it continued, which distinguishes them from others of the same name. */
  run: Type.String({ pattern: '^[A-Za-z0-9]{8}$' }),
  msn: Count,
  discontinuities: Count,
  /** Next version of the initialization, by track id. */
  inits: Type.Array(Type.Tuple([Type.Integer({ minimum: 0 }), Count])),
  /** Nothing came after this state was saved. */
  complete: Type.Boolean(),
  /** Time when it was saved, in milliseconds since the epoch, by the clock of that node. */
  at: Type.Number({ minimum: 0, maximum: 1e15 }),
  /** Shortest segment, in seconds. */
  segmentDuration: Type.Number({ minimum: 0.1, maximum: 1e6 }),
  /** Sessions that the server ended, as far as they are remembered. */
  kicked: Type.Array(Type.String({ maxLength: 128 })),
  key: Type.Optional(SavedKey),
});
export type SavedPlaylistState = Static<typeof SavedPlaylistState>;

/** Saved for concluded playlists: the next publisher does not continue them. */
export const CONCLUDED = {};

/** Segments between two saves, if they begin in time: each save costs the store. */
export const SEGMENTS_PER_SAVE = 2;
/** Share of its duration by which a segment may be early. */
const JITTER = 0.1;
/** Segments and initializations that a node may have begun beyond those that elapsed time accounts for. */
const MARGIN = 3;
/**
 * Earlier segments that are listed as gaps too, since players may have them. If the buffer of hls.js ends before a playlist that
 * begins with gaps, it is stuck: it chooses one of the gaps to start with, again and again.
 */
const LEADING = 3;
/** Longer interruptions outlast players, which have stopped or restart. */
const MAX_GAPS = 100;
/** Ended sessions that stay rejected when another node continues the stream. */
const MAX_KICKED = 50;

/** Reads saved state; undefined for that of an incompatible version. */
export function readSavedState(value: unknown): SavedPlaylistState | undefined {
  return Value.Check(SavedPlaylistState, value) ? value : undefined;
}

/** Makes the state to save. @returns undefined while there is nothing to continue */
export function toSavedState(
  run: string,
  progress: PlaylistPosition,
  facts: Pick<SavedPlaylistState, 'complete' | 'at' | 'segmentDuration' | 'key'>,
  kicked: Iterable<string>,
): SavedPlaylistState | undefined {
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
 * Tests whether a state differs from the saved one by more than time. The next segment does not count if it began in time: a node
 * that continues the stream accounts for it by the clock.
 */
export function isWorthSaving(
  one: SavedPlaylistState | typeof CONCLUDED,
  other: SavedPlaylistState | typeof CONCLUDED,
): boolean {
  const { at, msn } = one as Partial<SavedPlaylistState>;
  const expected = isInTime(one, other) ? { ...other, at, msn } : { ...other, at };
  return JSON.stringify(one) !== JSON.stringify(expected);
}

function isInTime(
  one: Partial<SavedPlaylistState>,
  { msn = 0, at = 0, segmentDuration = 0 }: Partial<SavedPlaylistState>,
): boolean {
  if (one.msn === undefined || one.at === undefined) return false;
  const segments = one.msn - msn;
  return segments < SEGMENTS_PER_SAVE && one.at - at >= segments * segmentDuration * 1000 * (1 - JITTER);
}

/**
 * Position from which a stream continues without the earlier segments. A node that could not reach the store, and has died since,
 * may have made segments ever since it saved its state.
 * @param now milliseconds since the epoch
 */
export function resumeFrom(
  saved: SavedPlaylistState,
  now: number,
): { readonly msn: number; readonly past: Resumption } {
  const { msn, discontinuities, inits, complete, at, segmentDuration } = saved;
  const since = Math.ceil(Math.max(0, now - at) / (segmentDuration * 1000));
  const ahead = complete ? 0 : MARGIN + since;
  return {
    msn: msn + 1 + ahead,
    past: {
      discontinuities,
      inits: new Map(inits.map(([id, version]) => [id, version + ahead])),
      // includes the segment that was growing: its parts are lost, except to players that have them
      gaps: complete ? 0 : Math.min(1 + ahead + Math.min(LEADING, msn), MAX_GAPS),
    },
  };
}
