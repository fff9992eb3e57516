import { CronExpressionParser, type CronField } from 'cron-parser';

/** `second minute hour`, each `*`, a number or a step such as `*` + `/5` (docs/compatibility.md#recordings-pushes-dumps). */
const FIELD = /^(?:\*|(?:\*\/)?\d{1,2})$/;
const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOURS = 24;
/** Longer than any change of clocks, except at the date line. */
const JUMP_MS = 3 * 3_600_000;
/** Each time of day comes within this span, in every zone. */
const HORIZON_MS = 3 * 24 * 3_600_000;

/** Local times when files end: the allowed values of each field. */
export interface Schedule {
  readonly seconds: ReadonlySet<number>;
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
}

/** undefined for an invalid text. */
export function parseSchedule(text: string): Schedule | undefined {
  const given = text.trim().split(/\s+/);
  if (given.length !== 3 || !given.every((field) => FIELD.test(field))) return undefined;
  try {
    const { second, minute, hour } = CronExpressionParser.parse(`${given.join(' ')} * * *`).fields;
    return { seconds: numbers(second), minutes: numbers(minute), hours: numbers(hour) };
  } catch {
    // out of range
    return undefined;
  }
}

function numbers({ values }: CronField): ReadonlySet<number> {
  return new Set(values.map(Number));
}

/**
 * Next time after a given one, both in milliseconds since the epoch. A schedule for every hour follows what the clock
 * shows. A time of certain hours is due once a day: where the clock is set back, when it is first shown; where the
 * clock skips it, as much later. cron-parser is not used: around changes of the clock its result can be in the past,
 * or skip a day (findings/cron-parser-clock-changes.sh).
 */
export function nextOf({ seconds, minutes, hours }: Schedule, after: number): number {
  const isHourly = hours.size === HOURS;
  const start = (Math.floor(after / SECOND_MS) + 1) * SECOND_MS;
  let at = start;
  while (at < start + HORIZON_MS) {
    const time = new Date(at);
    const due = (isHourly ? [wallClock(time)] : wallClocks(time)).filter(
      (clock) =>
        hours.has(clock.getUTCHours()) && minutes.has(clock.getUTCMinutes()) && (isHourly || instantOf(clock) === at),
    );
    if (due.some((clock) => seconds.has(clock.getUTCSeconds()))) return at;
    at += due.length > 0 ? SECOND_MS : MINUTE_MS - time.getSeconds() * SECOND_MS;
  }
  return at;
}

/** Local time as the UTC fields of a Date. */
function wallClock(time: Date): Date {
  return new Date(time.getTime() - time.getTimezoneOffset() * MINUTE_MS);
}

/** Local time, and what it would be if the clock had not been set forward shortly before. */
function wallClocks(time: Date): readonly Date[] {
  const now = wallClock(time);
  const jump = new Date(time.getTime() - JUMP_MS).getTimezoneOffset() - time.getTimezoneOffset();
  return jump > 0 ? [now, new Date(now.getTime() - jump * MINUTE_MS)] : [now];
}

/**
 * Instant at which the clock shows a time, the first of two. A skipped time counts as if the clock had not been set
 * forward (ECMA-262, "LocalTime and UTC").
 */
function instantOf(clock: Date): number {
  const day = [clock.getUTCFullYear(), clock.getUTCMonth(), clock.getUTCDate()] as const;
  return new Date(...day, clock.getUTCHours(), clock.getUTCMinutes(), clock.getUTCSeconds()).getTime();
}
