import test from 'ava';

interface File {
  readonly stream: string;
  readonly startTime: string;
  readonly finishTime: string;
}
interface DayBars {
  dayText(date: Date): string;
  dayOf(text: string): { from: number; to: number } | undefined;
  lanesOf(
    day: { from: number; to: number },
    files: readonly File[],
  ): [string, { left: number; width: number; file: File }[]][];
}
const { dayText, dayOf, lanesOf } = (await import(
  new URL('../../../../src/web/pages/console/day-bars.js', import.meta.url).href
)) as DayBars;

test('a day is from midnight to midnight of the zone', (t) => {
  const day = dayOf('2026-03-05');
  t.deepEqual(day, { from: new Date(2026, 2, 5).getTime(), to: new Date(2026, 2, 6).getTime() });
  t.is(dayText(new Date(day?.from ?? 0)), '2026-03-05');
  t.deepEqual(dayOf('2026-12-31')?.to, new Date(2027, 0, 1).getTime());
  for (const text of ['', 'today', '0001-01-01', '9999-12-31', '12026-01-01']) t.is(dayOf(text), undefined, text);
});

test('files are bars of their streams, cut off at midnight', (t) => {
  const day = { from: 0, to: 1000 };
  const file = (stream: string, from: number, to: number): File => ({
    stream,
    startTime: new Date(from).toISOString(),
    finishTime: new Date(to).toISOString(),
  });
  const files = [file('b', -500, 250), file('a', 500, 750), file('b', 900, 2000), file('a', 800, 700)];
  const lanes = lanesOf(day, files).map(([stream, bars]) => [stream, bars.map(({ left, width }) => [left, width])]);
  t.deepEqual(lanes, [
    [
      'a',
      [
        [0.5, 0.25],
        [0.8, 0],
      ],
    ],
    [
      'b',
      [
        [0, 0.25],
        [0.9, 1 - 0.9],
      ],
    ],
  ]);
});
