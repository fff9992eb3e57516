import { kilnError } from '../errors.ts';
import { parseRfc3339 } from '../lib/rfc3339.ts';
import { isId } from '../recording/finished/entry.ts';

/** Characters of the query of a URL. */
const MAX_QUERY = 4096;
/** Seconds of one clip. */
const MAX_SECONDS = 86_400;
const SECONDS = /^\d{1,9}(?:\.\d{1,20})?$/;
const FORMATS = ['fmp4', 'mp4'] as const;

export type Format = (typeof FORMATS)[number];

/** A time span, in milliseconds since the epoch; open where an end is absent. */
export interface Span {
  readonly start?: number;
  readonly end?: number;
}

/** A time span that is played. */
export type Clip = Required<Span>;

/** Reads the query of a list. @throws playbackQuery */
export function readSpan(query: URLSearchParams): Span {
  checkLength(query);
  const start = timeIn(query, 'start');
  const end = timeIn(query, 'end');
  if (start !== undefined && end !== undefined && end <= start) throw invalid('end is not after start');
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
}

/** Reads the query of a clip. @throws playbackQuery */
export function readClip(query: URLSearchParams, now: number): Clip {
  checkLength(query);
  const start = timeIn(query, 'start');
  if (start === undefined) throw invalid('start is missing');
  if (start > now) throw invalid('start is in the future');
  const duration = oneOf(query, 'duration');
  if (duration === undefined) throw invalid('duration is missing');
  if (!SECONDS.test(duration) || Number(duration) === 0)
    throw invalid('duration is no number of seconds above 0, such as 12.5');
  if (Number(duration) > MAX_SECONDS) throw invalid(`duration is more than ${MAX_SECONDS} seconds`);
  // a clip is known by its milliseconds
  return { start, end: start + Math.max(1, Math.round(Number(duration) * 1000)) };
}

/** @throws playbackQuery */
export function readFormat(query: URLSearchParams): Format {
  const given = oneOf(query, 'format') ?? 'fmp4';
  const format = FORMATS.find((one) => one === given);
  if (format === undefined) throw invalid('format is neither fmp4 nor mp4');
  return format;
}

/** Reads which recorded file is meant, where it is not any of its time. @throws playbackQuery */
export function readId(query: URLSearchParams): string | undefined {
  const id = oneOf(query, 'id');
  if (id !== undefined && !isId(id)) throw invalid('id is not that of a recorded file');
  return id;
}

function checkLength(query: URLSearchParams): void {
  if (query.toString().length > MAX_QUERY) throw invalid(`it is longer than ${MAX_QUERY} characters`);
}

function timeIn(query: URLSearchParams, name: string): number | undefined {
  const given = oneOf(query, name);
  const time = given === undefined ? undefined : parseRfc3339(given);
  if (given !== undefined && time === undefined)
    throw invalid(`${name} is no date and time of RFC 3339, such as 2026-12-31T20:15:00Z`);
  return time;
}

function oneOf(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name);
  if (more.length > 0) throw invalid(`${name} is given more than once`);
  return value;
}

function invalid(detail: string) {
  return kilnError('playbackQuery', detail);
}
