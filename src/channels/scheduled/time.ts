const FORM = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d{1,2})(?:\.(\d{1,9}))?(Z|[+-]\d\d(?::\d\d)?)?$/;

/**
 * Reads `YYYY-MM-DDTHH:MM:SS[.mmm](Z|±hh[:mm])` (ISO 8601) of an existing day. No zone means UTC; fractions of a
 * millisecond are cut off.
 * @returns milliseconds since the epoch; undefined for any other text, leap seconds included
 */
export function readTime(text: string): number | undefined {
  const match = FORM.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const zone = readZone(match[8] ?? 'Z');
  if (zone === undefined || hour > 23 || minute > 59 || second > 59) return undefined;
  const midnight = dayOf(year, month, day);
  if (midnight === undefined) return undefined;
  const ms = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  return midnight + ((hour * 60 + minute - zone) * 60 + second) * 1000 + ms;
}

/** Midnight of a day in UTC; undefined for a day that does not exist. @param month from 1 */
export function dayOf(year: number, month: number, day: number): number | undefined {
  // Date.UTC takes years below 100 for others
  const midnight = Date.UTC(year, month - 1, day);
  const date = new Date(midnight);
  const isThere = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isThere ? midnight : undefined;
}

/** Minutes east of UTC. */
function readZone(text: string): number | undefined {
  if (text === 'Z') return 0;
  const [hours = 0, minutes = 0] = text.slice(1).split(':').map(Number);
  if (hours > 23 || minutes > 59) return undefined;
  return (text.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
