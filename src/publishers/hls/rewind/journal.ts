import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { PACK_NAME, type Place } from './packs.ts';

/** Somewhat more than the longest segment that can be configured. */
const MAX_SECONDS = 4000;
const FileName = Type.String({ pattern: '^[a-z]+_[A-Za-z0-9_]+\\.(m4s|ts|vtt)$', maxLength: 200 });

/** Line of a journal for a segment. */
const StoredSegment = Type.Object({
  /** File name of its media. */
  name: FileName,
  /** Media sequence number. */
  msn: Type.Integer({ minimum: 0, maximum: 1e14 }),
  /** Seconds. */
  duration: Type.Number({ minimum: 0, maximum: MAX_SECONDS }),
  /** First presentation time, in milliseconds since the epoch. */
  wallClock: Type.Number({ minimum: 0, maximum: 8e15 }),
  discontinuity: Type.Boolean(),
  /** Discontinuities before it, its own not counted. */
  discontinuitySequence: Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 }),
  gap: Type.Boolean(),
  /** Playlist lines for ad breaks that begin or end with it; '' or ended by a line feed. */
  breaks: Type.String({ pattern: '^(#EXT-X-[^\\n]*\\n)*$' }),
  /** Encrypted segments need the keys of a line before. */
  init: Type.Optional(Type.Object({ name: FileName, encrypted: Type.Optional(Type.Boolean()) })),
  /** Bytes from the begin of the media to the end of its first frame, which can be decoded alone. */
  keyFrame: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 32 - 1 })),
  /** File name of its media playlist, in a journal of all of them. */
  list: Type.Optional(Type.String({ pattern: '^[a-z]+_[A-Za-z0-9_]+\\.m3u8$', maxLength: 200 })),
  /** Where its media is; absent for a gap, and for one whose media is a file of its own. */
  place: Type.Optional(
    Type.Object({
      pack: Type.String({ pattern: PACK_NAME.source }),
      at: Type.Integer({ minimum: 0, maximum: 2 ** 48 }),
      bytes: Type.Integer({ minimum: 0, maximum: 2 ** 32 - 1 }),
    }),
  ),
});
type StoredSegment = Static<typeof StoredSegment>;

/** Line of a journal for the keys of all segments of an initialization. */
const StoredKeys = Type.Object({
  init: FileName,
  /** Playlist lines (EXT-X-KEY). */
  keys: Type.String({ pattern: '^(#EXT-X-KEY:[^\\n]*\\n)+$' }),
});

/** A complete segment of a media playlist, as `FollowedSegment` describes it, whose media is kept elsewhere. */
export interface PastSegment extends Omit<StoredSegment, 'init' | 'list' | 'place'> {
  /** With playlist lines of the keys of its segments, ended by a line feed; '' or absent for segments in clear. */
  readonly init?: { readonly name: string; readonly keys?: string };
}

/** A segment of a journal. */
export interface JournalSegment extends PastSegment {
  /** In a journal of all media playlists. */
  readonly list?: string;
  readonly place?: Place;
}

let compiled: ReturnType<typeof Compile<typeof StoredSegment>> | undefined;
let compiledKeys: ReturnType<typeof Compile<typeof StoredKeys>> | undefined;

/** Lines of a journal for segments. */
export function journalLines(segments: readonly PastSegment[]): string {
  return segments.map((segment, index) => journalLine(segment, segments[index - 1])).join('');
}

/**
 * Line of a journal for a segment, after a line of its keys where they are new.
 * @param before segment of its media playlist in the journal before; undefined for the first one
 * @param kept its media playlist and place, in a journal of all playlists
 */
export function journalLine(
  segment: PastSegment,
  before?: PastSegment,
  kept?: Pick<JournalSegment, 'list' | 'place'>,
): string {
  const keys = segment.init?.keys ?? '';
  const isNew = keys !== '' && before?.init?.name !== segment.init?.name;
  return (isNew ? `${JSON.stringify({ init: segment.init?.name, keys })}\n` : '') + segmentLine(segment, kept);
}

function segmentLine(segment: PastSegment, kept?: Pick<JournalSegment, 'list' | 'place'>): string {
  const { name, msn, duration, wallClock, discontinuity, discontinuitySequence, gap, breaks, init, keyFrame } = segment;
  return `${JSON.stringify({
    ...{ name, msn, duration, wallClock, discontinuity, discontinuitySequence, gap, breaks },
    ...(init && { init: { name: init.name, ...((init.keys ?? '') !== '' && { encrypted: true }) } }),
    ...(keyFrame !== undefined && { keyFrame }),
    ...kept,
  })}\n`;
}

/**
 * Segments of a journal. Damaged lines, such as the last one before a crash, are left out, and so are encrypted segments whose keys
 * were in one.
 */
export function readJournal(text: string): JournalSegment[] {
  const known = (compiled ??= Compile(StoredSegment));
  const knownKeys = (compiledKeys ??= Compile(StoredKeys));
  const all = new Map<string, string>();
  return text.split('\n').flatMap((line) => {
    const value = parsed(line);
    if (knownKeys.Check(value)) all.set(value.init, value.keys);
    if (!known.Check(value)) return [];
    const { init, ...segment } = value;
    if (init?.encrypted !== true) return [value];
    const keys = all.get(init.name);
    return keys === undefined ? [] : [{ ...segment, init: { name: init.name, keys } }];
  });
}

/** Value of a line; undefined if it is no JSON. */
export function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
