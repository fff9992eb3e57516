import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

/** Somewhat more than the longest segment that can be configured. */
const MAX_SECONDS = 4000;
const FileName = Type.String({ pattern: '^[a-z]+_[A-Za-z0-9_]+\\.(m4s|ts|vtt)$', maxLength: 200 });

/** A complete segment of a media playlist, as `FollowedSegment` describes it, whose media is kept elsewhere. */
export const PastSegment = Type.Object({
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
  init: Type.Optional(Type.Object({ name: FileName })),
  /** Bytes from the begin of the media to the end of its first frame, which can be decoded alone. */
  keyFrame: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 32 - 1 })),
});
export type PastSegment = Static<typeof PastSegment>;

let compiled: ReturnType<typeof Compile<typeof PastSegment>> | undefined;

/** Line of a journal for a segment. */
export function journalLine(segment: PastSegment): string {
  const { name, msn, duration, wallClock, discontinuity, discontinuitySequence, gap, breaks, init, keyFrame } = segment;
  return `${JSON.stringify({
    ...{ name, msn, duration, wallClock, discontinuity, discontinuitySequence, gap, breaks },
    ...(init && { init: { name: init.name } }),
    ...(keyFrame !== undefined && { keyFrame }),
  })}\n`;
}

/** Segments of a journal. Damaged lines, such as the last one before a crash, are left out. */
export function readJournal(text: string): PastSegment[] {
  const known = (compiled ??= Compile(PastSegment));
  return text.split('\n').flatMap((line) => {
    const value = parsed(line);
    return known.Check(value) ? [value] : [];
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
