import { readMediaUrl } from '../media-url.ts';
import type { Component, Property } from './calendar-lines.ts';
import { readDuration, readLocalTime } from './calendar-time.ts';
import type { RawItem } from './raw-program.ts';
import { readRecurrence, type Recurrence } from './recurrence.ts';
import { shown, UploadError, type Place } from './upload-error.ts';
import { timeIn, UTC, type Zone } from './zone.ts';

const DAY_MS = 86_400_000;

/** A VEVENT. Times in milliseconds since the epoch. */
export interface CalendarEvent extends Place {
  readonly uid: string | undefined;
  readonly name: string;
  /** Items of the occurrence that begins at a time. */
  readonly itemsAt: (begins: number) => readonly RawItem[];
  readonly isCancelled: boolean;
  readonly begins: number;
  /** Begin of the occurrence on a day, counted from the epoch. */
  readonly timeOf: (day: number) => number;
  readonly recurrence: Recurrence | undefined;
  /** Times of excluded occurrences. */
  readonly excluded: ReadonlySet<number>;
  /** Time of the occurrence that it replaces, of the event with the same uid. */
  readonly replaces: number | undefined;
}

/** @param zoneOf finds the zone of a TZID @throws UploadError */
export function readEvent(component: Component, zoneOf: (property: Property) => Zone): CalendarEvent {
  const all = (name: string): Property[] => component.properties.filter((property) => property.name === name);
  const one = (name: string): Property | undefined => {
    const [first, second] = all(name);
    if (second !== undefined) throw new UploadError(second, `${name} is there twice`);
    return first;
  };
  const start = one('DTSTART');
  if (start === undefined) throw new UploadError(component, 'the event has no DTSTART');
  const { local, time: begins, zone } = readMoment(start, start.value, zoneOf);
  const timeOf = (day: number): number => timeIn(zone, day * DAY_MS + (((local % DAY_MS) + DAY_MS) % DAY_MS));
  const rule = one('RRULE');
  const replaced = one('RECURRENCE-ID');
  const excluded = all('EXDATE').flatMap((property) =>
    property.value.split(',').map((text) => readMoment(property, text, zoneOf).time),
  );
  const isCancelled = one('STATUS')?.value.trim().toUpperCase() === 'CANCELLED';
  const lengthAt = readLength({ begins, zone, end: one('DTEND'), duration: one('DURATION'), zoneOf });
  const urls = isCancelled ? [] : readUrls(component, [...all('ATTACH'), ...all('URL')]);
  return {
    line: component.line,
    column: component.column,
    uid: one('UID')?.value,
    name: unescaped(one('SUMMARY')?.value ?? ''),
    itemsAt: (time) => itemsOf(urls, lengthAt(time)),
    isCancelled,
    begins,
    timeOf,
    recurrence: rule && readRecurrence(rule, Math.floor(local / DAY_MS), timeOf),
    excluded: new Set(excluded),
    replaces: replaced && readMoment(replaced, replaced.value, zoneOf).time,
  };
}

/** Reads a time in the zone that its property names, or UTC. @throws UploadError */
function readMoment(
  property: Property,
  text: string,
  zoneOf: (property: Property) => Zone,
): { readonly local: number; readonly time: number; readonly zone: Zone } {
  const local = readLocalTime(text.trim().replace(/Z$/, ''));
  if (local === undefined) throw new UploadError(property, `${property.name}: ${shown(text)} is not a date and time`);
  const isLocal = property.parameters.has('TZID') && !text.trim().endsWith('Z');
  const zone = isLocal ? zoneOf(property) : UTC;
  return { local, time: timeIn(zone, local), zone };
}

interface Ends {
  /** Begin of the event, or of its first occurrence. */
  readonly begins: number;
  readonly zone: Zone;
  readonly end: Property | undefined;
  readonly duration: Property | undefined;
  readonly zoneOf: (property: Property) => Zone;
}

/**
 * Length in milliseconds of the occurrence that begins at a time; undefined for an event without an end. DTEND makes
 * all as long as the first one, DURATION as many days by the calendar (RFC 5545, section 3.8.5.3).
 */
function readLength({ begins, zone, end, duration, zoneOf }: Ends): (begins: number) => number | undefined {
  const given = end ?? duration;
  if (given === undefined) return () => undefined;
  const lengthAt = end === undefined ? readDurationIn(zone, given) : readSpan(begins, end, zoneOf);
  if (lengthAt(begins) <= 0) throw new UploadError(given, 'the event ends before it has begun');
  return lengthAt;
}

function readSpan(begins: number, end: Property, zoneOf: (property: Property) => Zone): () => number {
  const length = readMoment(end, end.value, zoneOf).time - begins;
  return () => length;
}

function readDurationIn(zone: Zone, property: Property): (begins: number) => number {
  const duration = readDuration(property.value.trim());
  if (duration === undefined)
    throw new UploadError(property, `DURATION: ${shown(property.value)} is not a length of time`);
  const { days, milliseconds } = duration;
  return (begins) => {
    const nextDay = days === 0 ? begins : timeIn(zone, begins + zone(begins) + days * DAY_MS);
    return nextDay + milliseconds - begins;
  };
}

/** @throws UploadError */
function readUrls(event: Component, properties: readonly Property[]): string[] {
  if (properties.length === 0) throw new UploadError(event, 'the event has neither URL nor ATTACH');
  return properties.map((property) => {
    const url = property.value.trim();
    if (readMediaUrl(url) !== undefined) return url;
    throw new UploadError(property, `${shown(url)} is not file:// and a path, or stream://vhost/app/stream`);
  });
}

/** A single item plays as long as the event lasts; of several, each plays to its end. */
function itemsOf(urls: readonly string[], length: number | undefined): RawItem[] {
  return urls.map((url) => ({ url, duration: (urls.length === 1 ? length : undefined) ?? -1 }));
}

/** Text of a property (section 3.3.11). */
function unescaped(text: string): string {
  return text.replaceAll(/\\([\\;,nN])/g, (_, character: string) => (/n/i.test(character) ? '\n' : character));
}
