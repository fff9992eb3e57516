import { kilnError } from '../../../errors.ts';
import { parseRfc3339 } from '../../../lib/rfc3339.ts';
import type { PastList } from './past-list.ts';
import { afterPast } from './with-past.ts';

const START = 'start';
const DATE = '#EXT-X-PROGRAM-DATE-TIME:';
const TARGET = /^#EXT-X-TARGETDURATION:(\d+)$/m;
/** Target durations before the end of a growing playlist in which players should not be made to start (RFC 8216 4.3.5.2). */
const EDGE_TARGETS = 3;

/**
 * Reads the time at which a player wants to start, in milliseconds since the epoch; undefined for none.
 * @throws playlistStart for several, and for anything else than a time
 */
export function readStart(query: URLSearchParams): number | undefined {
  const [start, ...more] = query.getAll(START);
  if (start === undefined) return undefined;
  if (more.length > 0) throw kilnError('playlistStart', 'it is given more than once');
  const at = parseRfc3339(start);
  if (at === undefined)
    throw kilnError('playlistStart', 'it is no date and time of RFC 3339, such as 2026-12-31T20:15:00Z');
  return at;
}

/** Removes the start from a query without `?`. */
export function withoutStart(query: string): string {
  return query
    .split('&')
    .filter((pair) => pair.split('=', 1)[0] !== START)
    .join('&');
}

/**
 * Finds the distance of a time from the end of a media playlist with its past: of the first media that ends after it. A time before
 * all that is listed is at the beginning.
 * @param list the present playlist
 * @param time milliseconds since the epoch
 * @returns seconds; undefined at the live edge, where players start anyway, or later
 */
export function secondsToEnd(list: string, past: PastList | undefined, time: number): number | undefined {
  const present = past && afterPast(list, past);
  let seconds = present && past.secondsFrom(time, present.from);
  for (const lines of (present?.rest ?? list).split(DATE).slice(1)) {
    const duration = secondsOf(lines);
    if (seconds !== undefined) seconds += duration;
    else if (!lines.includes('#EXT-X-GAP\n')) {
      const into = (time - Date.parse(lines.slice(0, lines.indexOf('\n')))) / 1000;
      if (into < duration) seconds = duration - Math.max(0, into);
    }
  }
  const edge = list.includes('#EXT-X-ENDLIST') ? 0 : EDGE_TARGETS * Number(TARGET.exec(list)?.[1] ?? 0);
  return seconds === undefined || seconds < edge ? undefined : seconds;
}

/** Duration of a segment, or of the parts that a growing one has. */
function secondsOf(lines: string): number {
  const whole = /^#EXTINF:([\d.]+)/m.exec(lines)?.[1];
  if (whole !== undefined) return Number(whole);
  let seconds = 0;
  for (const [, part] of lines.matchAll(/^#EXT-X-PART:DURATION=([\d.]+)/gm)) seconds += Number(part);
  return seconds;
}
