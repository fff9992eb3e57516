import { dayOf } from '../time.ts';

/** From Sunday, as Date counts them. */
export const WEEKDAYS: readonly string[] = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA'];

const LOCAL = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d))?$/;
const DURATION = /^\+?P(?:(\d{1,6})W|(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?)$/;

/**
 * Reads a date, or a date with a time such as `20260328T201500` (RFC 5545, sections 3.3.4 and 3.3.5), as if it were
 * UTC.
 * @returns milliseconds since the epoch; undefined for any other text
 */
export function readLocalTime(text: string): number | undefined {
  const match = LOCAL.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const midnight = dayOf(year, month, day);
  // a leap second counts as the one before it
  if (midnight === undefined || hour > 23 || minute > 59 || second > 60) return undefined;
  return midnight + ((hour * 60 + minute) * 60 + Math.min(second, 59)) * 1000;
}

/** Days by the calendar, which may have 23 or 25 hours, and an exact time after them. */
export interface Duration {
  readonly days: number;
  readonly milliseconds: number;
}

/** Reads a duration such as `P1DT1H30M` (section 3.3.6); undefined for any other text, and for negative ones. */
export function readDuration(text: string): Duration | undefined {
  const match = DURATION.exec(text);
  if (match === null || /[PT]$/.test(text)) return undefined;
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
  return { days: weeks * 7 + days, milliseconds: ((hours * 60 + minutes) * 60 + seconds) * 1000 };
}
