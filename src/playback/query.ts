import { kilnError } from '../errors.ts';
import { parseRfc3339 } from '../lib/rfc3339.ts';

/** Characters of the query of a URL. */
const MAX_QUERY = 4096;
/** A time span, in milliseconds since the epoch; open where an end is absent. */
export interface Span {
  readonly start?: number;
  readonly end?: number;
}

/** Reads the query of a list. @throws playbackQuery */
export function readSpan(query: URLSearchParams): Span {
  checkLength(query);
  const start = timeIn(query, 'start');
  const end = timeIn(query, 'end');
  if (start !== undefined && end !== undefined && end <= start) throw invalid('end is not after start');
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
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
