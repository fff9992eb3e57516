import { countUpTo } from '../count-up-to.ts';
import { dayOf } from '../time.ts';
import type { Component } from './calendar-lines.ts';
import { readLocalTime, WEEKDAYS } from './calendar-time.ts';
import { shown, UploadError } from './upload-error.ts';

const DAY_MS = 86_400_000;

/** Offset of a zone's clocks from UTC at a time; both in milliseconds. */
export type Zone = (time: number) => number;

export const UTC: Zone = () => 0;

/**
 * Time at which the clocks of a zone show a local time (RFC 5545, section 3.3.5): the first, of a time shown twice; a
 * skipped time counts as if it were not skipped.
 * @param local as if it were UTC
 */
export function timeIn(zone: Zone, local: number): number {
  const before = zone(local - DAY_MS);
  if (zone(local - before) === before) return local - before;
  const after = zone(local + DAY_MS);
  return zone(local - after) === after ? local - after : local - before;
}

/** Zone of the IANA database, also as the end of a longer id. @returns undefined for others */
export function namedZone(id: string): Zone | undefined {
  const parts = id.split('/').filter((part) => part !== '');
  for (const name of [parts.join('/'), parts.slice(-3).join('/'), parts.slice(-2).join('/')]) {
    const known = named.get(name.toLowerCase()) ?? (/^[A-Z]/i.test(name) ? formattedZone(name) : undefined);
    if (known === undefined) continue;
    named.set(name.toLowerCase(), known);
    return known;
  }
  return undefined;
}

/** Cached, as creating a formatter takes longer than reading a calendar. The number of zone names bounds it. */
const named = new Map<string, Zone>();

function formattedZone(name: string): Zone | undefined {
  try {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' });
    return (time) => offsetOf(format.format(time));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** @param text ends with `GMT` or `GMT+05:30` */
function offsetOf(text: string): number {
  const [, sign, hours, minutes, seconds = 0] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? [];
  if (sign === undefined) return 0;
  return (sign === '-' ? -1000 : 1000) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds));
}

/** Yearly change of a zone's clocks to another offset. */
interface Observance {
  readonly from: number;
  readonly to: number;
  /** First time, by the clocks before it, as if that were UTC. */
  readonly begins: number;
  /** undefined: once only. */
  readonly yearly: Yearly | undefined;
}

interface Yearly {
  readonly month: number;
  /** 0 is Sunday. */
  readonly weekday: number;
  /** Index among those of the month; negative: from its end. */
  readonly nth: number;
  /** Last possible time, in UTC. */
  readonly until: number;
}

/** Real zones have a few hundred at most. */
const MAX_OBSERVANCES = 500;
/** Limit of years whose changes are cached. */
const MAX_YEARS = 32;

/** A change of the clocks to an offset. */
interface Onset {
  /** In UTC. */
  readonly time: number;
  readonly offset: number;
}

/** The zone that a VTIMEZONE describes (section 3.6.5). @throws UploadError */
export function describedZone(component: Component): Zone {
  const [first] = component.components;
  if (first === undefined) throw new UploadError(component, 'the zone has neither STANDARD nor DAYLIGHT');
  const beyond = component.components[MAX_OBSERVANCES];
  if (beyond !== undefined)
    throw new UploadError(beyond, `the zone has more than ${MAX_OBSERVANCES} changes of its clocks`);
  const observances = component.components.map(readObservance);
  const earliest = observances.reduce((one, other) => (other.begins < one.begins ? other : one));
  const known = new Map<number, readonly Onset[]>();
  const around = (year: number): readonly Onset[] => {
    const present = known.get(year);
    if (present !== undefined) return present;
    const onsets = onsetsAround(observances, year);
    if (known.size === MAX_YEARS) known.clear();
    known.set(year, onsets);
    return onsets;
  };
  return (time) => {
    const onsets = around(new Date(time).getUTCFullYear());
    return onsets[countUpTo(onsets, time, (onset) => onset.time) - 1]?.offset ?? earliest.from;
  };
}

/** Changes of the clocks in a year, the one before and the one after, and single changes, in order. */
function onsetsAround(observances: readonly Observance[], year: number): Onset[] {
  const onsets = observances.flatMap((observance) => {
    const years = observance.yearly === undefined ? [year] : [year - 1, year, year + 1];
    return years.map((of) => ({ time: onsetIn(observance, of), offset: observance.to }));
  });
  const sorted = onsets.filter(({ time }) => time < Infinity).sort((one, other) => one.time - other.time);
  // of simultaneous changes the first counts
  return sorted.filter(({ time }, index) => time !== sorted[index - 1]?.time);
}

/** Time of its change in a year, or its only one, in UTC. Infinity: none in that year. */
function onsetIn({ begins, from, yearly }: Observance, year: number): number {
  if (yearly === undefined) return begins - from;
  const { month, weekday, nth } = yearly;
  const edge = nth > 0 ? Date.UTC(year, month - 1, 1) : Date.UTC(year, month, 0);
  const away = (new Date(edge).getUTCDay() - weekday) * (nth > 0 ? -1 : 1);
  const days = ((away + 7) % 7) + (Math.abs(nth) - 1) * 7;
  const onset = edge + (nth > 0 ? days : -days) * DAY_MS + (((begins % DAY_MS) + DAY_MS) % DAY_MS);
  return onset >= begins && onset - from <= yearly.until ? onset - from : Infinity;
}

function readObservance(component: Component): Observance {
  const value = (name: string): string => {
    const property = component.properties.find((one) => one.name === name);
    if (property === undefined) throw new UploadError(component, `${component.name} has no ${name}`);
    return property.value;
  };
  const begins = readLocalTime(value('DTSTART'));
  if (begins === undefined) throw new UploadError(component, `${shown(value('DTSTART'))} is not a local time`);
  const offset = (name: string): number => {
    const [, sign, hours, minutes, seconds = 0] = /^([+-])(\d\d)(\d\d)(\d\d)?$/.exec(value(name)) ?? [];
    if (sign === undefined) throw new UploadError(component, `${name}: ${shown(value(name))} is not as +0100`);
    return (sign === '-' ? -1000 : 1000) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds));
  };
  const rule = component.properties.find(({ name }) => name === 'RRULE');
  const yearly = rule && readYearly(rule.value);
  if (rule !== undefined && yearly === undefined)
    throw new UploadError(rule, `${shown(rule.value)} is not as FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU`);
  return { from: offset('TZOFFSETFROM'), to: offset('TZOFFSETTO'), begins, yearly };
}

function readYearly(rule: string): Observance['yearly'] {
  const parts = new Map(rule.split(';').map((part) => part.split('=') as [string, string]));
  const [, nth, day] = /^([+-]?[1-5])(SU|MO|TU|WE|TH|FR|SA)$/.exec(parts.get('BYDAY') ?? '') ?? [];
  const month = Number(parts.get('BYMONTH'));
  const isYearly = parts.get('FREQ') === 'YEARLY' && (parts.get('INTERVAL') ?? '1') === '1';
  const until = readLocalTime((parts.get('UNTIL') ?? '99991231').replace(/Z$/, ''));
  if (!isYearly || day === undefined || until === undefined || dayOf(2000, month, 1) === undefined) return undefined;
  return { month, weekday: WEEKDAYS.indexOf(day), nth: Number(nth), until };
}
