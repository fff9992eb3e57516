import { readEvent, type CalendarEvent } from './calendar-event.ts';
import { readCalendar, type Component, type Property } from './calendar-lines.ts';
import { uploadText, type RawProgram } from './raw-program.ts';
import { shown, UploadError } from './upload-error.ts';
import { describedZone, namedZone, type Zone } from './zone.ts';

const DAY_MS = 86_400_000;
const MAX_EVENTS = 1000;
/** Limit of excluded occurrences of all events. */
const MAX_EXCLUDED = 10_000;
/** Period for which recurring events are expanded. */
const AHEAD_DAYS = 92;
/** Period before now that is searched for occurrences that still last. */
const BACK_DAYS = 8;
/** Together with those of one more day, still fewer than a schedule may have. */
const MANY_PROGRAMS = 3000;

export interface CalendarReading {
  readonly programs: readonly RawProgram[];
  /** Time until which recurring events are expanded, in milliseconds since the epoch; undefined: there are none. */
  readonly until: number | undefined;
}

interface Occurrence {
  readonly event: CalendarEvent;
  readonly time: number;
}

// By hand rather than by ical.js 2.2.1: that reports no lines, takes 30 February and unknown zones for other times without
// a word, and hangs on zones with FREQ=SECONDLY, long EXDATE and parameter lists; it knows no zones of the IANA database.
/**
 * Reads programs from an iCalendar (RFC 5545): each VEVENT is one, SUMMARY its name, and URL or ATTACH its items. Events
 * recur daily or weekly, and are followed for three months from `now`. Zones are those of the IANA database, or are
 * described by the calendar; times without a zone are in UTC.
 * @param now milliseconds since the epoch
 * @throws UploadError
 */
export function readCalendarPrograms(text: string, now: number): CalendarReading {
  const calendar = readCalendar(uploadText(text));
  const components = calendar.components.filter(({ name }) => name === 'VEVENT');
  const beyond = components[MAX_EVENTS];
  if (beyond !== undefined) throw new UploadError(beyond, `the calendar has more than ${MAX_EVENTS} events`);
  checkExcluded(components);
  const zoneOf = zoneFinder(calendar);
  const all = components.map((component) => readEvent(component, zoneOf));
  const replaced = new Set(all.flatMap(({ uid, replaces }) => (replaces === undefined ? [] : `${replaces} ${uid}`)));
  const events = all.filter(({ isCancelled }) => !isCancelled);
  const isLeft = ({ event, time }: Occurrence): boolean =>
    !event.excluded.has(time) && (event.replaces !== undefined || !replaced.has(`${time} ${event.uid}`));
  const { occurrences, until } = expand(events, now);
  const sorted = occurrences.filter(isLeft).sort((one, other) => one.time - other.time);
  for (const [index, { event, time }] of sorted.entries()) {
    const before = sorted[index - 1];
    if (before?.time !== time) continue;
    const at = new Date(time).toISOString();
    throw new UploadError(event, `the event on line ${before.event.line} begins at the same time: ${at}`);
  }
  const running = sorted.findLastIndex(({ time }) => time <= now);
  const programs = sorted.slice(Math.max(0, running)).map(({ event: { name, itemsAt }, time }) => ({
    name,
    scheduled: new Date(time).toISOString(),
    repeat: false,
    items: itemsAt(time),
  }));
  return { programs, until };
}

/** Limits the exclusions: each costs a look-up of its zone. @throws UploadError */
function checkExcluded(events: readonly Component[]): void {
  let count = 0;
  for (const { properties } of events) {
    for (const property of properties) {
      if (property.name === 'EXDATE') count += property.value.split(',').length;
      if (count > MAX_EXCLUDED)
        throw new UploadError(property, `the calendar has more than ${MAX_EXCLUDED} dates in EXDATE`);
    }
  }
}

/** All single events, and the occurrences of recurring ones from some days ago on. */
function expand(events: readonly CalendarEvent[], now: number): { occurrences: Occurrence[]; until?: number } {
  const once = events.filter(({ recurrence }) => recurrence === undefined);
  const recurring = events.filter(({ recurrence }) => recurrence !== undefined);
  const occurrences: Occurrence[] = once.map((event) => ({ event, time: event.begins }));
  if (recurring.length === 0) return { occurrences };
  const today = Math.floor(now / DAY_MS);
  let day = today - BACK_DAYS;
  for (; day <= today + AHEAD_DAYS && occurrences.length < MANY_PROGRAMS; day++) {
    for (const event of recurring) {
      if (!event.recurrence?.isOn(day)) continue;
      const time = event.timeOf(day);
      if (time <= event.recurrence.until) occurrences.push({ event, time });
    }
  }
  // in another zone a later day may already have begun
  const until = (day - 1) * DAY_MS;
  return {
    occurrences: occurrences.filter(({ event, time }) => event.recurrence === undefined || time < until),
    until,
  };
}

/** Finds zones by TZID: in the IANA database, or else as the calendar describes them. */
function zoneFinder(calendar: Component): (property: Property) => Zone {
  const known = new Map<string, Zone | undefined>();
  const described = new Map<string, Component>();
  for (const component of calendar.components) {
    const id = component.properties.find(({ name }) => name === 'TZID');
    if (component.name === 'VTIMEZONE' && id !== undefined) described.set(id.value, component);
  }
  return (property) => {
    const id = property.parameters.get('TZID') ?? '';
    if (!known.has(id)) {
      const component = described.get(id);
      known.set(id, namedZone(id) ?? (component && describedZone(component)));
    }
    const zone = known.get(id);
    if (zone === undefined) throw new UploadError(property, `the zone ${shown(id)} is not known`);
    return zone;
  };
}
