import { nextOf, parseSchedule, type Schedule } from '../../../src/recording/schedule.ts';

const DAY_MS = 24 * 3_600_000;
const MINUTE_MS = 60_000;
const [FROM, TO] = [Date.UTC(2020, 0), Date.UTC(2030, 0)];
const AROUND = [
  '0 */30 *',
  '0 0 *',

  '0 */7 *',
  '0 0 */2',
  '0 */20 */3',
  '0 0 0',
  '0 30 1',
  '0 5 2',
  '0 45 3',
  '0 30 23',
];

/** A change of the clock: when, in milliseconds, and by how much it is before UTC earlier and later. */
interface Change {
  readonly at: number;
  readonly before: number;
  readonly later: number;
}

/** The changes of the clock of this process. */
function changes(): Change[] {
  const offset = (at: number) => -new Date(at).getTimezoneOffset() * MINUTE_MS;
  const found: Change[] = [];
  for (let week = FROM; week < TO; week += 7 * DAY_MS) {
    const [before, later] = [offset(week), offset(week + 7 * DAY_MS)];
    if (before === later) continue;
    let [low, high] = [week, week + 7 * DAY_MS];
    while (high - low > MINUTE_MS) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS;
      if (offset(middle) === before) low = middle;
      else high = middle;
    }
    // one that is no change but the beginning of two has more of them than this test can tell apart
    if (offset(high) === later) found.push({ at: high, before, later });
  }
  return found;
}

/** Every time at which a schedule is due within a day and a half around a change, by counting minutes. */
function expected({ at, before, later }: Change, { minutes, hours }: Schedule): number[] {
  const matches = (clock: number) => {
    const time = new Date(clock);
    return minutes.has(time.getUTCMinutes()) && hours.has(time.getUTCHours());
  };
  const due = new Set<number>();
  for (let minute = at - 2 * DAY_MS; minute <= at + 2 * DAY_MS; minute += MINUTE_MS) {
    if (hours.size === 24) {
      if (matches(minute + (minute < at ? before : later))) due.add(minute);
      continue;
    }
    // here it counts what the clock reads
    if (!matches(minute)) continue;
    due.add(minute - before < at || minute - later < at ? minute - before : minute - later);
  }
  return [...due].filter((one) => Math.abs(one - at) <= 1.5 * DAY_MS).sort((one, other) => one - other);
}

const known = new Set<string>();
const wrong: string[] = [];
for (const zone of process.argv.slice(2)) {
  // only the main thread of a process can change its zone
  process.env.TZ = zone;
  for (const change of changes()) {
    // many zones are alike
    if (known.size === known.add(JSON.stringify(change)).size) continue;
    for (const text of AROUND) {
      const schedule = parseSchedule(text) as Schedule;
      const due = expected(change, schedule);
      const found: number[] = [];
      for (let at = (due[0] as number) - 1; found.length < due.length; found.push(at)) at = nextOf(schedule, at);
      const place = due.findIndex((time, index) => time !== found[index]);
      if (place < 0) continue;
      const [right, instead] = [due, found].map((times) => new Date(times[place] as number).toISOString());
      wrong.push(`${zone}, "${text}": ${instead} instead of ${right}`);
    }
  }
}
process.stdout.write(JSON.stringify({ changes: known.size, wrong }));
