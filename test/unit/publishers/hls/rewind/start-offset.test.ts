import test from 'ava';
import { PastList } from '../../../../../src/publishers/hls/rewind/past-list.ts';
import { readStart, secondsToEnd, withoutStart } from '../../../../../src/publishers/hls/rewind/start-offset.ts';

const read = (query: string): number | undefined => readStart(new URLSearchParams(query));

/** Segments of 2 s, a break of a minute before segment 5, and a gap. */
const at = (msn: number): number => msn * 2000 + (msn >= 5 ? 60_000 : 0);
const isGap = (msn: number): boolean => msn === 7;

function pastOf(from: number, to: number): PastList {
  const past = new PastList('');
  for (let msn = from; msn < to; msn++)
    past.add({
      ...{ name: `seg_5_${msn}_v.m4s`, msn, duration: 2, wallClock: at(msn), gap: isGap(msn), breaks: '' },
      discontinuity: msn === 5,
      discontinuitySequence: msn > 5 ? 1 : 0,
    });
  return past;
}

const dated = (msn: number): string => `#EXT-X-PROGRAM-DATE-TIME:${new Date(at(msn)).toISOString()}\n`;
const lines = (msn: number): string => `${dated(msn)}#EXTINF:2.000000,\nseg_5_${msn}_v.m4s\n`;
const head = (msn: number): string =>
  `#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:${msn}\n`;
const PART = '#EXT-X-PART:DURATION=0.500000,URI="part_5_12_0_v.m4s",INDEPENDENT=YES\n';
/** The present: segments 10 and 11, and a part of the next one. */
const EDGE = `${head(10)}${lines(10)}${lines(11)}${dated(12)}${PART}`;

test('times of RFC 3339', (t) => {
  const noon = Date.UTC(2026, 10, 29, 12);
  t.is(read(''), undefined);
  t.is(read('start=2026-11-29T12:00:00Z'), noon);
  t.is(read('a=1&start=2026-11-29t12:00:00.250z'), noon + 250);
  t.is(read('start=2026-11-29T13:30:00%2B01:30'), noon);
  t.is(read('start=2026-11-29T13:30:00+01:30'), noon);
  t.is(read('start=2026-11-29T10:30:00-01:30'), noon);
});

for (const query of [
  'start=',
  'start',
  'start=yesterday',
  'start=1000000000',
  'start=2026-11-29',
  'start=2026-11-29T12:00:00',
  'start=2026-13-29T12:00:00Z',
  'start=2026-11-29T25:00:00Z',
  'start=2026-11-29T12:00:00%2B99:00',
  'start=2026-11-29T12:00:00Z%0A',
  'start=2026-11-29T12:00:00Z&start=2026-11-29T12:00:00Z',
])
  test(`refuses ${query}`, (t) => {
    t.throws(() => read(query), { code: 'playlistStart' });
  });

test('only the start leaves a query', (t) => {
  t.is(withoutStart('start=x'), '');
  t.is(withoutStart('a=1&start=x&_HLS_legacy=YES'), 'a=1&_HLS_legacy=YES');
  t.is(withoutStart('restart=1&starts=2'), 'restart=1&starts=2');
});

test('a time within a segment of the past: the playlist from there on, breaks in time left out', (t) => {
  const past = pastOf(0, 12);
  t.is(secondsToEnd(EDGE, past, at(0)), 24.5);
  t.is(secondsToEnd(EDGE, past, at(3) + 500), 18);
  t.is(secondsToEnd(EDGE, past, at(6)), 12.5);
});

test('a time between two publishers, or in a gap: the media after it', (t) => {
  const past = pastOf(0, 12);
  t.is(secondsToEnd(EDGE, past, at(4) + 30_000), 14.5);
  t.is(secondsToEnd(EDGE, past, at(7) + 1000), 8.5);
});

test('a time before all that is listed: its beginning', (t) => {
  t.is(secondsToEnd(EDGE, pastOf(0, 12), at(0) - 1e12), 24.5);
  t.is(secondsToEnd(EDGE, pastOf(3, 12), at(0)), 18.5);
});

test('a time at the live edge, or in the future: none', (t) => {
  const past = pastOf(0, 12);
  t.is(secondsToEnd(EDGE, past, at(10)), undefined);
  t.is(secondsToEnd(EDGE, past, at(12) + 500), undefined);
  t.is(secondsToEnd(EDGE, past, at(12) + 1e12), undefined);
});

test('a playlist that has ended: up to its end', (t) => {
  const ended = `${head(10)}${lines(10)}${lines(11)}#EXT-X-ENDLIST\n`;
  t.is(secondsToEnd(ended, pastOf(0, 12), at(11)), 2);
  t.is(secondsToEnd(ended, pastOf(0, 12), at(12)), undefined);
});

test('without a past: within the present playlist', (t) => {
  const long = head(8) + [8, 9, 10, 11, 12].map((msn) => lines(msn)).join('');
  t.is(secondsToEnd(long, undefined, at(9)), 8);
  t.is(secondsToEnd(long, new PastList(''), at(9)), 8);
  t.is(secondsToEnd(long, undefined, at(0)), 10);
});

test('gaps at the head of the present playlist whose segments the past has', (t) => {
  const gap = (msn: number): string => `${dated(msn)}#EXT-X-GAP\n#EXTINF:2.000000,\nseg_5_${msn}_v.m4s\n`;
  const resumed = `${head(9)}${gap(9)}${gap(10)}${lines(11)}${lines(12)}`;
  t.is(secondsToEnd(resumed, pastOf(0, 12), at(9) + 1000), 7);
});
