import test from 'ava';
import { nextOf, parseSchedule, type Schedule } from '../../../src/recording/schedule.ts';

function next(text: string, after: string): string {
  const at = nextOf(parseSchedule(text) as Schedule, new Date(after).getTime());
  const time = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${time.getDate()} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

// local times: none of these days has a change of the clock
const CASES = [
  ['* * *', '2026-01-05T10:00:00', '5 10:00:01'],
  ['0 * *', '2026-01-05T10:00:00', '5 10:01:00'],
  ['*/20 * *', '2026-01-05T10:00:05.5', '5 10:00:20'],
  ['30 */15 *', '2026-01-05T10:45:30', '5 11:00:30'],
  ['0 0 0', '2026-01-05T00:00:00', '6 00:00:00'],
  ['0 0 */8', '2026-01-05T17:00:00', '6 00:00:00'],
  ['59 59 23', '2026-01-05T23:59:58.999', '5 23:59:59'],
] as const;

for (const [text, after, expected] of CASES) {
  test(`a schedule "${text}" is due after ${after} at ${expected}`, (t) => t.is(next(text, after), expected));
}

for (const text of [
  '',
  '* *',
  '* * * *',
  '60 * *',
  '* 60 *',
  '* * 24',
  '*/0 * *',
  '-1 * *',
  '1-2 * *',
  '1,2 * *',
  'a * *',
]) {
  test(`"${text}" is no schedule`, (t) => t.is(parseSchedule(text), undefined));
}
