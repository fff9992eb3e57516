import { CronExpressionParser, type CronExpression } from 'cron-parser';

/** `second minute hour`, each `*`, a number or a step such as `*` + `/5` (facts/08-recording-push-dump.md). */
const FIELD = /^(?:\*|(?:\*\/)?\d{1,2})$/;

/** When files end, in local time. */
export type Schedule = CronExpression;

/** undefined for a text that is none. */
export function parseSchedule(text: string): Schedule | undefined {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== 3 || !fields.every((field) => FIELD.test(field))) return undefined;
  try {
    return CronExpressionParser.parse(`${fields.join(' ')} * * *`);
  } catch {
    // a number that is out of range
    return undefined;
  }
}

/** The next time after a given one, both in milliseconds since the epoch. */
export function nextOf(schedule: Schedule, after: number): number {
  schedule.reset(new Date(after));
  return schedule.next().getTime();
}
