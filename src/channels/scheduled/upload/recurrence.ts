import type { Property } from './calendar-lines.ts';
import { readLocalTime, WEEKDAYS } from './calendar-time.ts';
import { shown, UploadError } from './upload-error.ts';

/** Days are counted from the epoch, in the event's own zone. */
export interface Recurrence {
  readonly isOn: (day: number) => boolean;
  /** Latest begin of an occurrence, in milliseconds since the epoch. */
  readonly until: number;
}

const DAY_MS = 86_400_000;
/** Occurrences are counted at most this far from the first: 20 years. */
const MAX_DAYS = 7305;
const KNOWN = ['FREQ', 'INTERVAL', 'COUNT', 'UNTIL', 'BYDAY', 'WKST'];

/**
 * Reads the days of a daily or weekly event (RFC 5545, section 3.3.10).
 * @param first first day, which always has an occurrence
 * @param timeOf begin of the occurrence on a day
 * @throws UploadError
 */
export function readRecurrence(property: Property, first: number, timeOf: (day: number) => number): Recurrence {
  const parts = readParts(property);
  const refuse = (name: string): UploadError =>
    new UploadError(property, `RRULE: ${name}=${parts.get(name) ?? ''} is not possible here`);
  const number = (name: string, otherwise: number): number => {
    const text = parts.get(name);
    if (text !== undefined && !/^[1-9]\d{0,5}$/.test(text)) throw refuse(name);
    return text === undefined ? otherwise : Number(text);
  };
  const frequency = parts.get('FREQ') ?? '';
  if (frequency !== 'DAILY' && frequency !== 'WEEKLY') throw refuse('FREQ');
  const interval = number('INTERVAL', 1);
  const weekBegins = WEEKDAYS.indexOf(parts.get('WKST') ?? 'MO');
  if (weekBegins < 0) throw refuse('WKST');
  const named = parts
    .get('BYDAY')
    ?.split(',')
    .map((name) => WEEKDAYS.indexOf(name));
  if (named?.includes(-1)) throw refuse('BYDAY');
  const weekdays = new Set(named ?? (frequency === 'DAILY' ? WEEKDAYS.keys() : [weekdayOf(first)]));
  const weekOf = (day: number): number => Math.floor((day - ((weekdayOf(day) - weekBegins + 7) % 7)) / 7);
  const periods = (day: number): number => (frequency === 'DAILY' ? day - first : weekOf(day) - weekOf(first));
  const isOn = (day: number): boolean =>
    day === first || (day > first && periods(day) % interval === 0 && weekdays.has(weekdayOf(day)));
  const until = parts.has('UNTIL') ? readUntil(parts.get('UNTIL') ?? '', timeOf) : Infinity;
  if (until === undefined) throw refuse('UNTIL');
  const count = number('COUNT', Infinity);
  if (count === Infinity) return { isOn, until };
  const last = lastOf(count, first, isOn);
  if (last === undefined) throw refuse('COUNT');
  return { isOn, until: Math.min(until, timeOf(last)) };
}

function readParts(property: Property): Map<string, string> {
  const parts = new Map<string, string>();
  for (const part of property.value
    .toUpperCase()
    .split(';')
    .filter((text) => text !== '')) {
    const [name = '', value] = part.split('=');
    if (value === undefined || !KNOWN.includes(name) || parts.has(name))
      throw new UploadError(
        property,
        `RRULE: ${shown(part)} is not possible here: only ${KNOWN.join(', ')}, once each`,
      );
    parts.set(name, value);
  }
  return parts;
}

/** A date includes its whole day. */
function readUntil(text: string, timeOf: (day: number) => number): number | undefined {
  const time = readLocalTime(text.replace(/Z$/, ''));
  if (time === undefined || text.includes('T')) return time;
  return timeOf(time / DAY_MS);
}

/** Day of the last of `count` occurrences; undefined when it is too far away. */
function lastOf(count: number, first: number, isOn: (day: number) => boolean): number | undefined {
  let left = count;
  for (let day = first; day < first + MAX_DAYS; day++) if (isOn(day) && --left === 0) return day;
  return undefined;
}

/** 0 is Sunday; the epoch began on a Thursday. */
function weekdayOf(day: number): number {
  return (((day + 4) % 7) + 7) % 7;
}
