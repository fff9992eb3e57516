import test from 'ava';

interface Stretch {
  readonly start: number;
  readonly seconds: number;
  readonly date: number;
  readonly gap: boolean;
}
interface Segment {
  readonly start: number;
  readonly duration: number;
  readonly programDateTime: number | null;
  readonly gap?: boolean;
}
interface Span {
  readonly from: number;
  readonly to: number;
}
type Key = { key: string; altKey: boolean; ctrlKey: boolean; metaKey: boolean; repeat: boolean };
interface RewindTimes {
  stretchesOf(segments: Iterable<Segment>): Stretch[];
  dateAt(stretches: readonly Stretch[], time: number): number;
  timeAt(stretches: readonly Stretch[], date: number): number;
  jumped(stretches: readonly Stretch[], time: number, seconds: number): number;
  missingSpans(stretches: readonly Stretch[], nearMs: number): Span[];
  lastTime(stretches: readonly Stretch[]): number;
  placeOf(span: Span, date: number): number;
  clock(date: number, end: number, locale?: string): string;
  lag(seconds: number): string;
  marksOf(span: Span, most: number, locale?: string): { date: number; text: string }[];
  wishOf(event: Key, isFocused: boolean): unknown;
}
const { stretchesOf, dateAt, timeAt, jumped, missingSpans, lastTime, placeOf, clock, lag, marksOf, wishOf } =
  (await import(new URL('../../../../src/web/pages/rewind-times.js', import.meta.url).href)) as RewindTimes;

/** Segments of 2 s, one after the other. @param dates in seconds; negative: of a gap */
const segments = (...dates: readonly number[]): Segment[] =>
  dates.map((date, index) => ({
    start: 100 + index * 2,
    duration: 2,
    programDateTime: Math.abs(date) * 1000,
    gap: date < 0,
  }));

/** 1000 to 1006, a break of 60 s, 1066 to 1070, a gap of 4 s, 1074 to 1078. */
const BROKEN = stretchesOf(segments(1000, 1002, 1004, 1066, 1068, -1070, -1072, 1074, 1076));

test('segments whose dates go on are one stretch', (t) => {
  t.deepEqual(BROKEN, [
    { start: 100, seconds: 6, date: 1_000_000, gap: false },
    { start: 106, seconds: 4, date: 1_066_000, gap: false },
    { start: 110, seconds: 4, date: 1_070_000, gap: true },
    { start: 114, seconds: 4, date: 1_074_000, gap: false },
  ]);
  t.is(lastTime(BROKEN), 118);
});

test('dates that drift slowly away from media times are followed', (t) => {
  const drifting = Array.from({ length: 1000 }, (_, index) => ({
    start: index * 2,
    duration: 2,
    programDateTime: index * 2010,
  }));
  const stretches = stretchesOf(drifting);
  for (const index of [0, 333, 999]) t.true(Math.abs(dateAt(stretches, index * 2) - index * 2010) < 500, `${index}`);
  t.deepEqual(missingSpans(stretches, 0), []);
});

test('a playlist without dates has no stretches', (t) => {
  t.deepEqual(stretchesOf([{ start: 0, duration: 2, programDateTime: null }]), []);
  t.deepEqual(stretchesOf([]), []);
});

test('media times and dates are found by each other', (t) => {
  for (const [time, date] of [
    [100, 1_000_000],
    [103.5, 1_003_500],
    [106, 1_066_000],
    [109, 1_069_000],
    [115, 1_075_000],
    // beyond the end both go on
    [120, 1_080_000],
  ] as const) {
    t.is(dateAt(BROKEN, time), date);
    t.is(timeAt(BROKEN, date), time);
  }
  t.is(dateAt(BROKEN, 99), 999_000);
});

test('where there is no media, the next is found', (t) => {
  t.is(timeAt(BROKEN, 1_030_000), 106);
  t.is(timeAt(BROKEN, 1_071_500), 114);
  t.is(timeAt(BROKEN, 0), 100);
});

test('a jump counts playable media only', (t) => {
  t.is(jumped(BROKEN, 108, 1), 109);
  t.is(jumped(BROKEN, 107, -3), 104);
  t.is(jumped(BROKEN, 109, 5), 118);
  t.is(jumped(BROKEN, 115, -5), 106);
  // from within a gap
  t.is(jumped(BROKEN, 112, 5), 119);
  t.is(jumped(BROKEN, 112, -1), 109);
  t.is(jumped(BROKEN, 103, -60), 100);
  t.is(jumped(BROKEN, 117, 60), 177);
  t.is(jumped([], 7, 5), 7);
});

test('breaks and gaps are missing, and those close together are one', (t) => {
  const [pause, gap] = [
    { from: 1_006_000, to: 1_066_000 },
    { from: 1_070_000, to: 1_074_000 },
  ];
  t.deepEqual(missingSpans(BROKEN, 1000), [pause, gap]);
  t.deepEqual(missingSpans(BROKEN, 10_000), [{ from: pause.from, to: gap.to }]);
  t.deepEqual(missingSpans(stretchesOf(segments(1000, 1002.3)), 0), []);
});

test('a place is between the ends of the time line', (t) => {
  const span = { from: 1000, to: 3000 };
  t.deepEqual(
    [0, 1000, 1500, 3000, 9000].map((date) => placeOf(span, date)),
    [0, 0, 0.25, 1, 1],
  );
  t.is(placeOf({ from: 5, to: 5 }, 5), 1);
});

/** Time of day of the zone that tests run in. */
const local = (hours: number, minutes = 0, seconds = 0, day = 15): number =>
  new Date(2026, 5, day, hours, minutes, seconds).getTime();

test('a time has its date where it is of another day', (t) => {
  t.is(clock(local(20, 15, 3), local(21), 'en-GB'), '20:15:03');
  t.is(clock(local(23, 50, 0, 14), local(0, 10), 'en-GB'), '14 Jun, 23:50:00');
  t.is(clock(local(20, 15, 3), local(21), 'en-US').replaceAll(/\s/g, ' '), '8:15:03 PM');
});

test('the time behind the live edge is told in the two largest units', (t) => {
  t.deepEqual([-1, 0.4, 59.4, 60, 185, 3600, 7320].map(lag), [
    '0 s',
    '0 s',
    '59 s',
    '1 min 0 s',
    '3 min 5 s',
    '1 h 0 min',
    '2 h 2 min',
  ]);
});

test('marks are round times of day, no more than there is room for', (t) => {
  const texts = (from: number, to: number, most: number) =>
    marksOf({ from, to }, most, 'en-GB').map(({ text }) => text);
  t.deepEqual(texts(local(20, 0, 3), local(20, 0, 33), 6), [
    '20:00:05',
    '20:00:10',
    '20:00:15',
    '20:00:20',
    '20:00:25',
    '20:00:30',
  ]);
  t.deepEqual(texts(local(20, 7), local(21, 2), 4), ['20:15', '20:30', '20:45', '21:00']);
  t.deepEqual(texts(local(22, 30, 0, 14), local(1, 30), 3), ['23:00', '15 Jun', '01:00']);
  t.deepEqual(texts(local(0, 0, 0, 11), local(12, 0, 0, 15), 2), ['12 Jun', '15 Jun']);
  t.deepEqual(marksOf({ from: local(20, 0, 1), to: local(20, 0, 2) - 500 }, 1, 'en-GB').length, 1);
  for (let most = 1; most < 12; most++)
    t.true(marksOf({ from: local(3), to: local(14, 7, 12) }, most).length <= most + 1);
});

test('keys jump as those of other players do', (t) => {
  const wish = (key: string, isFocused = false, more: Partial<Key> = {}) =>
    wishOf({ key, altKey: false, ctrlKey: false, metaKey: false, repeat: false, ...more }, isFocused);
  const jumps = Object.fromEntries(['ArrowLeft', 'ArrowRight', 'j', 'l', 'J', 'L'].map((key) => [key, wish(key)]));
  t.deepEqual(jumps, {
    ArrowLeft: { jump: -5 },
    ArrowRight: { jump: 5 },
    j: { jump: -10 },
    l: { jump: 10 },
    J: { jump: -10 },
    L: { jump: 10 },
  });
  t.deepEqual([wish('Home'), wish('End'), wish('k'), wish(' ')], ['begin', 'live', 'pause', 'pause']);
  for (const [key, jump] of [
    ['ArrowDown', -5],
    ['ArrowUp', 5],
    ['PageDown', -60],
    ['PageUp', 60],
  ] as const) {
    t.is(wish(key), undefined, `${key} scrolls the page`);
    t.deepEqual(wish(key, true), { jump });
  }
  for (const key of ['a', 'Enter', 'Tab', 'constructor', 'toString']) t.is(wish(key, true), undefined);
  t.is(wish('ArrowLeft', true, { altKey: true }), undefined);
  t.is(wish('l', true, { ctrlKey: true }), undefined);
  t.is(wish('l', true, { metaKey: true }), undefined);
  t.deepEqual(wish('l', true, { repeat: true }), { jump: 10 });
  t.is(wish(' ', true, { repeat: true }), undefined);
});
