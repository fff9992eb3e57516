import { execFileSync } from 'node:child_process';
import test from 'ava';
import { long } from '../../support/runner/long.ts';
import { seeded } from '../../unit/codecs/vectors.ts';

const CHILD = new URL('../../support/recording/schedule-child.ts', import.meta.url).pathname;
const ZONES = Intl.supportedValuesOf('timeZone');
/** Offsets, jumps or times of day that are rare. */
const ODD = [
  'Pacific/Chatham',
  'Australia/Lord_Howe',
  'America/Nuuk',
  'America/Santiago',
  'Africa/Casablanca',
  'Africa/Cairo',
  'Asia/Beirut',
];

interface Report {
  readonly changes: number;
  readonly wrong: readonly string[];
}

/** Asks schedules in some time zones for all times around each change of the clock within ten years. */
function goThrough(zones: readonly string[]): Report {
  return JSON.parse(execFileSync(process.execPath, [CHILD, ...zones], { encoding: 'utf8' })) as Report;
}

test('schedules are due when they should be, however clocks change', (t) => {
  const random = seeded(7);
  const some = Array.from({ length: 4 }, () => ZONES[Math.floor(random() * ZONES.length)] as string);
  const { changes, wrong } = goThrough([...ODD, ...some]);
  t.deepEqual(wrong, []);
  t.true(changes >= 50, `${changes} changes`);
});

long('local times of recording schedules are right in all time zones', (t) => t.deepEqual(goThrough(ZONES).wrong, []));

test('a day that a place has left out has no times', (t) => {
  const source = new URL('../../../src/recording/schedule.ts', import.meta.url).href;
  // Apia went from the 29th of December 2011 to the 31st
  const script = `import { nextOf, parseSchedule } from '${source}';
    console.log(new Date(nextOf(parseSchedule('0 0 12'), Date.parse('2011-12-29T22:00:00Z'))).toISOString());`;
  const env = { ...process.env, TZ: 'Pacific/Apia' };
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env, encoding: 'utf8' });
  t.is(said, '2011-12-30T22:00:00.000Z\n');
});
