import test from 'ava';
import { readClip, readFormat, readSpan } from '../../../src/playback/query.ts';

const NOON = Date.UTC(2026, 2, 5, 12);
const AT_NOON = 'start=2026-03-05T12:00:00Z';
const clip = (query: string) => readClip(new URLSearchParams(query), NOON + 60_000);
const span = (query: string) => readSpan(new URLSearchParams(query));
const format = (query: string) => readFormat(new URLSearchParams(query));

test('a clip has a start and a duration', (t) => {
  t.deepEqual(clip(`${AT_NOON}&duration=10`), { start: NOON, end: NOON + 10_000 });
  t.deepEqual(clip('start=2026-03-05T13:00:00.250+01:00&duration=0.5'), { start: NOON + 250, end: NOON + 750 });
  t.deepEqual(clip(`${AT_NOON}&duration=0.0001`), { start: NOON, end: NOON + 1 });
  t.deepEqual(clip(`${AT_NOON}&duration=86400&format=mp4&policy=x`), { start: NOON, end: NOON + 86_400_000 });
});

const BAD_CLIPS: readonly (readonly [query: string, reason: RegExp])[] = [
  ['duration=10', /start is missing/],
  [AT_NOON, /duration is missing/],
  [`start=&duration=10`, /start is no date/],
  [`start=yesterday&duration=10`, /start is no date/],
  [`start=2026-03-05&duration=10`, /start is no date/],
  [`start=1709640000&duration=10`, /start is no date/],
  [`start=2026-13-05T12:00:00Z&duration=10`, /start is no date/],
  [`start=%zz%00%ff&duration=10`, /start is no date/],
  [`start=2026-03-05T12:01:01Z&duration=10`, /in the future/],
  [`start=9999-12-31T23:59:59Z&duration=10`, /in the future/],
  [`${AT_NOON}&${AT_NOON}&duration=10`, /start is given more than once/],
  [`${AT_NOON}&duration=10&duration=10`, /duration is given more than once/],
  ...['', '0', '0.0', '-1', 'NaN', 'Infinity', '1e3', '0x10', '10s', '%00', '１０'].map(
    (duration) => [`${AT_NOON}&duration=${duration}`, /duration is no number/] as const,
  ),
  [`${AT_NOON}&duration=86400.001`, /more than 86400 seconds/],
  [`${AT_NOON}&duration=999999999`, /more than 86400 seconds/],
  [`${AT_NOON}&duration=1000000000`, /duration is no number|more than/],
  [`${AT_NOON}&duration=10&more=${'x'.repeat(4096)}`, /longer than 4096/],
];

test('a malformed query of a clip is refused, with the reason', (t) => {
  for (const [query, reason] of BAD_CLIPS)
    t.regex(t.throws(() => clip(query), { code: 'playbackQuery' }, query)?.message ?? '', reason, query);
});

test('a format is fmp4 or mp4', (t) => {
  t.deepEqual([format(''), format('format=fmp4'), format('format=mp4')], ['fmp4', 'fmp4', 'mp4']);
  for (const bad of ['format=', 'format=MP4', 'format=webm', 'format=mp4&format=mp4'])
    t.throws(() => format(bad), { code: 'playbackQuery' }, bad);
});

test('a list may have a start and an end', (t) => {
  t.deepEqual(span(''), {});
  t.deepEqual(span(AT_NOON), { start: NOON });
  t.deepEqual(span('end=2026-03-05T12:00:00Z'), { end: NOON });
  t.deepEqual(span(`start=9999-01-01T00:00:00Z`), { start: Date.UTC(9999, 0) });
  for (const bad of ['start=x', 'end=', `${AT_NOON}&end=2026-03-05T12:00:00Z`, 'end=2026-03-05T12:00:00Z&end=x'])
    t.throws(() => span(bad), { code: 'playbackQuery' }, bad);
});
