import test from 'ava';
import { readSpan } from '../../../src/playback/query.ts';

const NOON = Date.UTC(2026, 2, 5, 12);
const AT_NOON = 'start=2026-03-05T12:00:00Z';
const span = (query: string) => readSpan(new URLSearchParams(query));

test('a list may have a start and an end', (t) => {
  t.deepEqual(span(''), {});
  t.deepEqual(span(AT_NOON), { start: NOON });
  t.deepEqual(span('end=2026-03-05T12:00:00Z'), { end: NOON });
  t.deepEqual(span(`start=9999-01-01T00:00:00Z`), { start: Date.UTC(9999, 0) });
  for (const bad of ['start=x', 'end=', `${AT_NOON}&end=2026-03-05T12:00:00Z`, 'end=2026-03-05T12:00:00Z&end=x'])
    t.throws(() => span(bad), { code: 'playbackQuery' }, bad);
});
