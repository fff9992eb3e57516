import { readLines, type Line } from './tags.ts';
import type { Report } from './rules.ts';

export interface Part {
  readonly at: number;
  readonly uri: string;
  /** Seconds. */
  readonly duration: number;
  readonly independent: boolean;
  readonly gap: boolean;
  readonly byteRange: string | undefined;
}

export interface Segment {
  /** Line of its URI; of a growing one, of its newest part. */
  at: number;
  msn: number;
  /** Undefined: it is growing. */
  uri: string | undefined;
  /** Seconds; of a growing one, of its parts. */
  duration: number;
  discontinuity: boolean;
  gap: boolean;
  byteRange: string | undefined;
  /** URI and byte range of the EXT-X-MAP that applies; undefined: none was seen. */
  map: string | undefined;
  /** Lists of the EXT-X-KEY that apply, by KEYFORMAT; undefined: none was seen. */
  keys: ReadonlyMap<string, string> | undefined;
  /** EXT-X-PROGRAM-DATE-TIME in milliseconds since the epoch. */
  date: number | undefined;
  readonly parts: Part[];
}

export interface MediaPlaylist {
  readonly text: string;
  readonly lines: readonly Line[];
  /** Seconds. */
  readonly targetDuration: number;
  readonly mediaSequence: number;
  readonly discontinuitySequence: number;
  readonly type: string | undefined;
  readonly ended: boolean;
  /** Segments that EXT-X-SKIP stands for. */
  readonly skipped: number;
  /** Complete ones. */
  readonly segments: readonly Segment[];
  readonly growing: Segment | undefined;
}

/** A date of a playlist in milliseconds since the epoch; without a time zone it is UTC (4.4.4.6). */
export function dateOf(text: string): number {
  return Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
}

/** Lines of one tag. */
export function linesOf({ lines }: Pick<MediaPlaylist, 'lines'>, name: string): Line[] {
  return lines.filter((line) => line.name === name);
}

/** An attribute of the first line of a tag. */
export function attributeOf(playlist: Pick<MediaPlaylist, 'lines'>, name: string, attribute: string) {
  return linesOf(playlist, name)[0]?.attributes.get(attribute);
}

/** The same as a number. */
export function numberOf(playlist: Pick<MediaPlaylist, 'lines'>, name: string, attribute: string): number | undefined {
  const value = attributeOf(playlist, name, attribute);
  return value === undefined ? undefined : Number(value);
}

/** Segments, the growing one included. */
export function allSegments({ segments, growing }: MediaPlaylist): Segment[] {
  return growing === undefined ? [...segments] : [...segments, growing];
}

/** Seconds of the complete segments. */
export function lengthOf({ segments }: MediaPlaylist): number {
  return segments.reduce((sum, { duration }) => sum + duration, 0);
}

/** Discontinuity sequence numbers by media sequence number (6.2.1); not those of a delta update, which does not tell. */
export function discontinuityNumbers(playlist: MediaPlaylist): Map<number, number> {
  const numbers = new Map<number, number>();
  let number = playlist.discontinuitySequence;
  for (const { msn, discontinuity } of allSegments(playlist)) numbers.set(msn, discontinuity ? ++number : number);
  return numbers;
}

const COMMON_TO_PARTS: ReadonlySet<string> = new Set([
  'EXT-X-DISCONTINUITY',
  'EXT-X-KEY',
  'EXT-X-MAP',
  'EXT-X-PROGRAM-DATE-TIME',
]);
const OF_SEGMENT: ReadonlySet<string> = new Set([...COMMON_TO_PARTS, 'EXTINF', 'EXT-X-BYTERANGE', 'EXT-X-GAP']);

/** Reads a media playlist, and checks its lines, and that tags are where they belong. */
export function readMediaPlaylist(text: string, report: Report): MediaPlaylist {
  const lines = readLines(text, report);
  const valueOf = (name: string) => lines.find((line) => line.name === name)?.value;
  const mediaSequence = Number(valueOf('EXT-X-MEDIA-SEQUENCE') ?? 0);
  const skipped = numberOf({ lines }, 'EXT-X-SKIP', 'SKIPPED-SEGMENTS') ?? 0;
  const segments: Segment[] = [];
  let next = emptySegment(mediaSequence + skipped, undefined);
  let hasExtinf = false;
  let waiting: Line | undefined;
  for (const line of lines) {
    const { at, name, value, attributes } = line;
    if (name !== undefined && COMMON_TO_PARTS.has(name) && next.parts.length > 0) report('tag-behind-part', at, name);
    if (name !== undefined && OF_SEGMENT.has(name)) waiting = line;
    if (name === 'EXTINF') {
      next.duration = Number.parseFloat(value);
      hasExtinf = true;
    } else if (name === 'EXT-X-PART') {
      next.parts.push({
        at,
        uri: attributes.get('URI') ?? '',
        duration: Number(attributes.get('DURATION')),
        independent: attributes.get('INDEPENDENT') === 'YES',
        gap: attributes.get('GAP') === 'YES',
        byteRange: attributes.get('BYTERANGE'),
      });
      next.at = at;
    } else if (name === undefined) {
      if (!hasExtinf) report('extinf-missing', at, value);
      next.uri = value;
      next.at = at;
      segments.push(next);
      next = emptySegment(next.msn + 1, next);
      hasExtinf = false;
      waiting = undefined;
    } else applyTag(next, line);
    checkOrder(line, segments.length > 0 || next.parts.length > 0, report);
  }
  const hasParts = next.parts.length > 0;
  if (waiting !== undefined && (hasExtinf || !hasParts)) report('uri-missing', waiting.at, waiting.name ?? '');
  next.duration = next.parts.reduce((sum, { duration }) => sum + duration, 0);
  return {
    text,
    lines,
    targetDuration: Number(valueOf('EXT-X-TARGETDURATION') ?? 0),
    mediaSequence,
    discontinuitySequence: Number(valueOf('EXT-X-DISCONTINUITY-SEQUENCE') ?? 0),
    type: valueOf('EXT-X-PLAYLIST-TYPE'),
    ended: valueOf('EXT-X-ENDLIST') !== undefined,
    skipped,
    segments,
    growing: hasParts ? next : undefined,
  };
}

function emptySegment(msn: number, before: Pick<Segment, 'map' | 'keys'> | undefined): Segment {
  return {
    ...{ at: 0, msn, uri: undefined, duration: 0, discontinuity: false, gap: false, byteRange: undefined },
    ...{ map: before?.map, keys: before?.keys, date: undefined, parts: [] },
  };
}

function applyTag(segment: Segment, { name, value, attributes }: Line): void {
  if (name === 'EXT-X-DISCONTINUITY') segment.discontinuity = true;
  if (name === 'EXT-X-GAP') segment.gap = true;
  if (name === 'EXT-X-BYTERANGE') segment.byteRange = value;
  if (name === 'EXT-X-PROGRAM-DATE-TIME') segment.date = dateOf(value);
  if (name === 'EXT-X-MAP') {
    const range = attributes.get('BYTERANGE');
    segment.map = `${attributes.get('URI') ?? ''}${range === undefined ? '' : ` ${range}`}`;
  }
  if (name === 'EXT-X-KEY') {
    const isNone = attributes.get('METHOD') === 'NONE';
    segment.keys = new Map(isNone ? [] : [...(segment.keys ?? []), [attributes.get('KEYFORMAT') ?? 'identity', value]]);
  }
}

function checkOrder({ name, at, value }: Line, begun: boolean, report: Report): void {
  if (!begun) return;
  if (name === 'EXT-X-MEDIA-SEQUENCE') report('sequence-late', at, value);
  if (name === 'EXT-X-DISCONTINUITY-SEQUENCE') report('discontinuity-sequence-late', at, value);
}
