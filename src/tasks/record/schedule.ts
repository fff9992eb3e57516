/** When files end: `second minute hour`, each `*`, a number or a step such as `*` + `/5`, in local time. */
export interface Schedule {
  readonly seconds: ReadonlySet<number>;
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
}

/** Two days: a change of the clock may skip an hour. */
const MAX_HOURS = 48;
const SECOND_MS = 1000;

/** undefined for a text that is none. */
export function parseSchedule(text: string): Schedule | undefined {
  const fields = text.trim().split(/\s+/);
  const [seconds, minutes, hours] = fields.map((field, index) => valuesOf(field, index === 2 ? 24 : 60));
  if (fields.length !== 3 || !seconds || !minutes || !hours) return undefined;
  return { seconds, minutes, hours };
}

/** The next time after a given one, both in milliseconds since the epoch. */
export function nextOf({ seconds, minutes, hours }: Schedule, after: number): number {
  const date = new Date(Math.floor(after / SECOND_MS) * SECOND_MS + SECOND_MS);
  for (let skipped = 0; skipped < MAX_HOURS;) {
    if (!hours.has(date.getHours())) {
      skipped += 1;
      date.setTime(date.getTime() + (3600 - date.getMinutes() * 60 - date.getSeconds()) * SECOND_MS);
    } else if (!minutes.has(date.getMinutes())) {
      date.setTime(date.getTime() + (60 - date.getSeconds()) * SECOND_MS);
    } else if (!seconds.has(date.getSeconds())) {
      date.setTime(date.getTime() + SECOND_MS);
    } else {
      return date.getTime();
    }
  }
  return Infinity;
}

function valuesOf(field: string, below: number): ReadonlySet<number> | undefined {
  const all = Array.from({ length: below }, (_, value) => value);
  if (field === '*') return new Set(all);
  const [, step, exact] = /^(?:\*\/(\d{1,2})|(\d{1,2}))$/.exec(field) ?? [];
  const number = Number(step ?? exact ?? NaN);
  if (!(number < below) || (step !== undefined && number === 0)) return undefined;
  return new Set(step === undefined ? [number] : all.filter((value) => value % number === 0));
}
