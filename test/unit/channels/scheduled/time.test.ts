import test from 'ava';
import { readTime } from '../../../../src/channels/scheduled/time.ts';
import { seeded } from '../../codecs/vectors.ts';

test('a time is read with its zone, and without one as UTC', (t) => {
  const noon = Date.UTC(2026, 2, 29, 12);
  for (const text of [
    '2026-03-29T12:00:00Z',
    '2026-03-29T12:00:00',
    '2026-03-29T12:00:00.000Z',
    '2026-03-29T14:00:00+02:00',
    '2026-03-29T14:00:00+02',
    '2026-03-29T02:30:00.000-09:30',
    '2026-03-30T11:59:00+23:59',
    '2026-03-29T12:00:0.0Z',
  ])
    t.is(readTime(text), noon, text);
});

test('fractions of a second are cut off below a millisecond', (t) => {
  const base = Date.UTC(2023, 8, 27, 4, 21, 15);
  t.is(readTime('2023-09-27T13:21:15.123+09:00'), base + 123);
  t.is(readTime('2023-09-27T04:21:15.1'), base + 100);
  t.is(readTime('2023-09-27T04:21:15.12'), base + 120);
  t.is(readTime('2023-09-27T04:21:15.123999999Z'), base + 123);
});

test('times before the epoch and leap days are read', (t) => {
  t.is(readTime('1969-12-31T23:59:59.999Z'), -1);
  t.is(readTime('2024-02-29T00:00:00Z'), Date.UTC(2024, 1, 29));
  t.is(readTime('2000-02-29T00:00:00Z'), Date.UTC(2000, 1, 29));
});

test('days and hours that do not exist are refused, and so are other forms', (t) => {
  for (const text of [
    '2026-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-13-10T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '0050-01-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T25:00:00Z',
    '2026-01-01T10:60:00Z',
    '2016-12-31T23:59:60Z',
    '2026-01-01T10:00:00+24:00',
    '2026-01-01T10:00:00+09:60',
    '2026-01-01T10:00:00+9:00',
    '2026-01-01T10:00:00+0900',
    '2026-01-01T10:00:00.Z',
    '2026-01-01T10:00Z',
    '2026-01-01 10:00:00Z',
    '2026-01-01',
    '26-01-01T10:00:00Z',
    '2026-01-01T10:00:00Z\n',
    '２０２６-01-01T10:00:00Z',
    '1767261600000',
    'now',
    '',
  ])
    t.is(readTime(text), undefined, text);
});

test('a text that Date prints is read back, and any other text is a time or rejected', (t) => {
  const random = seeded(5);
  for (let round = 0; round < 5000; round++) {
    const time = Math.floor((random() * 2 - 0.2) * 4e12);
    const text = new Date(time).toISOString();
    t.is(readTime(text), time);
    const place = Math.floor(random() * text.length);
    const strange = text.slice(0, place) + '0123456789TZ:-+. x'[Math.floor(random() * 19)] + text.slice(place + 1);
    const read = readTime(strange);
    t.true(read === undefined || Number.isSafeInteger(read), strange);
  }
});
