import test from 'ava';
import { PastList } from '../../../../../src/publishers/hls/rewind/past-list.ts';
import {
  journalLine,
  journalLines,
  readJournal,
  type PastSegment,
} from '../../../../../src/publishers/hls/rewind/journal.ts';

const DAY = Date.UTC(2026, 0, 1);
const INIT = 'init_5_video_abcdefgh_llhls.m4s';

function segment(msn: number, more: Partial<PastSegment> = {}): PastSegment {
  return {
    name: `seg_5_${msn}_video_abcdefgh_llhls.m4s`,
    msn,
    duration: 2,
    wallClock: DAY + msn * 2000,
    discontinuity: false,
    discontinuitySequence: 0,
    gap: false,
    breaks: '',
    init: { name: INIT },
    ...more,
  };
}

function listOf(segments: Iterable<PastSegment>, query = ''): PastList {
  const list = new PastList(query);
  for (const each of segments) list.add(each);
  return list;
}

function* range(from: number, to: number): Generator<PastSegment> {
  for (let msn = from; msn < to; msn++) yield segment(msn);
}

const text = (list: PastList, from: number, to: number): string =>
  list
    .pieces(from, to)
    .map(({ plain }) => plain.toString())
    .join('');

const numbers = (lines: string): number[] => [...lines.matchAll(/^seg_5_(\d+)_/gm)].map(([, msn]) => Number(msn));

test('lines of a segment, the first with its initialization', (t) => {
  const list = listOf([segment(7), segment(8, { breaks: '#EXT-X-CUE-IN\n', gap: true })], '?key=1');
  t.is(
    text(list, 7, 9),
    `#EXT-X-MAP:URI="${INIT}?key=1"\n` +
      '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:14.000Z\n#EXTINF:2.000000,\nseg_5_7_video_abcdefgh_llhls.m4s?key=1\n' +
      '#EXT-X-CUE-IN\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:16.000Z\n#EXT-X-GAP\n' +
      '#EXTINF:2.000000,\nseg_5_8_video_abcdefgh_llhls.m4s?key=1\n',
  );
});

test('another initialization follows the discontinuity, wherever the lines begin', (t) => {
  const other = { discontinuity: true, init: { name: 'init_5_v1.m4s' } };
  const list = listOf([segment(0), segment(1, other), segment(2, { init: { name: 'init_5_v1.m4s' } })]);
  const change = '#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="init_5_v1.m4s"\n#EXT-X-PROGRAM-DATE-TIME';
  t.true(text(list, 0, 3).includes(`seg_5_0_video_abcdefgh_llhls.m4s\n${change}`));
  t.true(text(list, 1, 3).startsWith(change));
  t.true(text(list, 2, 3).startsWith('#EXT-X-MAP:URI="init_5_v1.m4s"\n#EXT-X-PROGRAM-DATE-TIME'));
  t.is(text(list, 0, 3).split('EXT-X-MAP').length, 3);
});

test('a segment has the duration that it had at the live edge, subtitles too', (t) => {
  const durationOf = (name: string, duration: number) => {
    const { init: _init, ...plain } = segment(0, { name, duration });
    return /#EXTINF:.*/.exec(text(listOf([plain]), 0, 1))?.[0];
  };
  t.is(durationOf('seg_7_0_abcdefgh_llhls.vtt', 61 / 30), '#EXTINF:2.033334,');
  t.is(durationOf('seg_7_0_hls.vtt', 2.034), '#EXTINF:2.034,');
  t.is(durationOf('seg_7_0_hls.ts', 2.034), '#EXTINF:2.034,');
});

test('a list of MPEG-TS has no initialization', (t) => {
  const { init: _init, ...plain } = segment(0, { name: 'seg_abc_0_hls.ts' });
  const list = listOf([plain]);
  t.is(text(list, 0, 1), '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.000Z\n#EXTINF:2.000,\nseg_abc_0_hls.ts\n');
});

test('thousands of segments: numbers, seconds, and any range of the lines', (t) => {
  const list = listOf(range(100, 3000));
  t.deepEqual([list.first, list.next, list.seconds], [100, 3000, 5800]);
  for (const [from, to] of [
    [100, 101],
    [355, 357],
    [356, 612],
    [400, 2999],
    [2999, 3000],
    [500, 500],
  ] as const) {
    t.deepEqual(
      numbers(text(list, from, to)),
      Array.from({ length: to - from }, (_, index) => from + index),
    );
  }
});

test('old segments are dropped', (t) => {
  const list = listOf(range(0, 1000));
  list.dropBefore(300);
  t.deepEqual([list.first, list.next, list.seconds, list.empty], [300, 1000, 1400, false]);
  t.false(list.has(299));
  t.true(list.has(300));
  t.true(text(list, 0, 1000).startsWith(`#EXT-X-MAP:URI="${INIT}"\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:10:00.000Z`));
  list.dropBefore(5000);
  t.deepEqual([list.first, list.next, list.seconds, list.empty], [1000, 1000, 0, true]);
  t.true(list.add(segment(1000)));
  t.is(list.first, 1000);
});

test('segments that it has are ignored, numbers that were left out are gaps', (t) => {
  const list = listOf([...range(0, 3), segment(5, { discontinuity: true, discontinuitySequence: 1 })]);
  t.false(list.add(segment(2)));
  t.deepEqual([list.first, list.next], [0, 6]);
  t.deepEqual(
    [0, 1, 2, 3, 4, 5].map((msn) => list.has(msn)),
    [true, true, true, false, false, true],
  );
  t.is(
    text(list, 3, 5),
    `#EXT-X-MAP:URI="${INIT}"\n` +
      '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:06.000Z\n#EXT-X-GAP\n#EXTINF:2.000000,\nseg_5_3_video_abcdefgh_llhls.m4s\n' +
      '#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:08.000Z\n#EXT-X-GAP\n#EXTINF:2.000000,\nseg_5_4_video_abcdefgh_llhls.m4s\n',
  );
  t.is(list.discontinuitySequence(4), 0);
  t.is(list.discontinuitySequence(5), 1);
});

test('a hole that is too long begins the list anew', (t) => {
  const list = listOf([...range(0, 3), segment(50_000)]);
  t.deepEqual([list.first, list.next, list.seconds], [50_000, 50_001, 2]);
});

test('a segment whose media is lost becomes a gap, and the lines around it stay', (t) => {
  const list = listOf([...range(0, 300)]);
  const before = list.pieces(0, 300).map(({ plain }) => plain.toString());
  const there = list.pieces(0, 300);
  for (const msn of [0, 100, 255, 256, 299, 100]) list.markGap(msn);
  list.markGap(5000);
  const lines = text(list, 0, 300);
  t.deepEqual(
    [...lines.matchAll(/#EXT-X-GAP\n#EXTINF:2.000000,\nseg_5_(\d+)_/g)].map(([, msn]) => Number(msn)),
    [0, 100, 255, 256, 299],
  );
  t.is(lines.replaceAll('#EXT-X-GAP\n', ''), before.join(''));
  t.deepEqual(
    there.map(({ plain }) => plain.toString()),
    before,
  );
  t.false(list.has(100));
});

test('the lines of a full block are compressed once', async (t) => {
  const list = listOf(range(0, 600));
  const deflated = await Promise.all(list.pieces(0, 600).map((piece) => piece.deflated()));
  list.add(segment(600));
  const again = await Promise.all(list.pieces(0, 601).map((piece) => piece.deflated()));
  // the first piece is the initialization
  t.is(again[1], deflated[1]);
  t.is(again[2], deflated[2]);
  t.not(again[3], deflated[3]);
});

test('segments come back as they were added', (t) => {
  const given = [
    segment(7, { breaks: '#EXT-X-CUE-OUT:DURATION=5\n#EXT-X-CUE-IN\n' }),
    segment(8, { discontinuity: true, discontinuitySequence: 3, breaks: '#EXT-X-CUE-IN\n', gap: true }),
    segment(9, { init: { name: 'init_5_video_abcdefgh_v1_llhls.m4s' }, duration: 1.25 }),
  ];
  const list = listOf(given, '?key=1');
  t.deepEqual(
    given.map(({ msn, name }) => list.segment(msn, name)),
    given,
  );
  t.deepEqual(readJournal(given.map((each) => journalLine(each)).join('')), given);
});

test('a segment whose number of discontinuities is higher follows one', (t) => {
  const list = listOf([segment(0), segment(1, { discontinuitySequence: 1 }), segment(2, { discontinuitySequence: 1 })]);
  t.regex(text(list, 0, 3), /seg_5_0_.*\n#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:.*\n#EXTINF:.*\nseg_5_1_/);
  t.is(text(list, 0, 3).split('EXT-X-DISCONTINUITY').length, 2);
  t.deepEqual(
    [0, 1, 2].map((msn) => list.discontinuitySequence(msn)),
    [0, 0, 1],
  );
});

test('the lines of segments keep no memory but their own', (t) => {
  const list = new PastList('');
  for (let msn = 0; msn < 20; msn++) list.add(segment(msn));
  const [, lines] = list.pieces(0, 20);
  t.is(lines?.plain.buffer.byteLength, lines?.plain.length);
});

test('a hole after a discontinuity counts it', (t) => {
  const list = listOf([
    segment(10, { discontinuity: true, discontinuitySequence: 3 }),
    segment(12, { discontinuitySequence: 4 }),
  ]);
  t.deepEqual(
    [10, 11, 12].map((msn) => list.discontinuitySequence(msn)),
    [3, 4, 4],
  );
  t.is(text(list, 10, 13).split('EXT-X-DISCONTINUITY').length, 2);
});

const gaps = (list: PastList): number[] =>
  Array.from({ length: list.next - list.first }, (_, index) => list.first + index).filter((msn) => !list.has(msn));

test('segments that were gaps are listed as if they had come in time', (t) => {
  const v1 = { init: { name: 'init_5_v1.m4s' } };
  const all = Array.from({ length: 1000 }, (_, msn) => {
    if (msn < 200) return segment(msn);
    if (msn < 400)
      return segment(msn, { ...v1, discontinuity: msn === 200, discontinuitySequence: msn === 200 ? 0 : 1 });
    if (msn < 700) return segment(msn, { discontinuity: msn === 400, discontinuitySequence: msn === 400 ? 1 : 2 });
    // of another packager, which does not list its discontinuity
    return segment(msn, { discontinuitySequence: 3, breaks: msn === 800 ? '#EXT-X-DATERANGE:ID="b"\n' : '' });
  });
  const range = '#EXT-X-DATERANGE:ID="a"\n';
  all[500] = segment(500, { discontinuitySequence: 2, breaks: range, duration: 3, keyFrame: 10 });
  const isMissing = ({ msn }: PastSegment): boolean => (msn >= 150 && msn < 650) || msn === 655;
  const whole = listOf(all);
  const list = listOf(all.filter((each) => !isMissing(each)));
  t.is(gaps(list).length, 501);
  t.is(list.discontinuitiesTo(999), 3);
  t.deepEqual(list.fill(all.slice(300, 700)).length, 351);
  t.is(gaps(list).length, 150);
  t.is(list.discontinuitiesTo(300), 1);
  t.is(list.discontinuitiesTo(999), 3);
  list.fill(all.slice(0, 250));
  list.fill(all.slice(0, 650));
  t.deepEqual(gaps(list), []);
  t.is(text(list, 0, 1000), text(whole, 0, 1000));
  t.is(list.seconds, whole.seconds);
  t.is(list.longest, 3);
  t.true(list.hasIFrames);
  t.is(list.dateRanges(1000), whole.dateRanges(1000));
  for (const msn of [0, 199, 200, 201, 400, 401, 650, 699, 700, 999])
    t.is(list.discontinuitySequence(msn), whole.discontinuitySequence(msn), `${msn}`);
  t.is(list.fills, 3);
});

test('what is listed already, before the list or after it, or a gap elsewhere too, is no filling', (t) => {
  const list = listOf([segment(10), segment(13)]);
  const before = text(list, 10, 14);
  t.deepEqual(list.fill([segment(9), segment(10, { duration: 9 }), segment(11, { gap: true }), segment(14)]), []);
  t.deepEqual(list.fill([]), []);
  t.is(text(list, 10, 14), before);
  t.is(list.fills, 0);
  list.dropBefore(12);
  t.deepEqual(list.fill([segment(11), segment(12)]), [12]);
  t.deepEqual(numbers(text(list, 12, 14)), [12, 13]);
  t.is(list.seconds, 4);
});

test('gaps after the last segment that is filled keep its discontinuities', (t) => {
  const list = listOf([segment(0), segment(6, { discontinuitySequence: 1 })]);
  list.fill([segment(2, { discontinuity: true })]);
  t.deepEqual(gaps(list), [1, 3, 4, 5]);
  t.deepEqual(
    [1, 2, 3, 5, 6].map((msn) => list.discontinuitySequence(msn)),
    [0, 0, 1, 1, 1],
  );
  t.is(text(list, 0, 7).split('EXT-X-DISCONTINUITY').length, 2);
});

const KEYS = '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://1"\n';
const MORE_KEYS = '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://2"\n';
const keyed = (msn: number, version: number, keys: string): PastSegment =>
  segment(msn, { init: { name: INIT.replace('_llhls', `_v${version}_llhls`), keys } });

test('keys are named where they change, up to segments in clear', (t) => {
  const list = listOf([keyed(1, 1, KEYS), keyed(2, 1, KEYS), keyed(3, 2, MORE_KEYS), segment(4), segment(5)]);
  const tags = (lines: string): string[] =>
    [...lines.matchAll(/^#EXT-X-(?:KEY:.*|MAP)|^seg_5_\d+/gm)].map(([tag]) => tag);
  const [one, other] = [KEYS.trim(), MORE_KEYS.trim()];
  t.deepEqual(tags(text(list, 1, 6)), [
    ...[one, '#EXT-X-MAP', 'seg_5_1', 'seg_5_2', other, '#EXT-X-MAP', 'seg_5_3'],
    ...['#EXT-X-KEY:METHOD=NONE', '#EXT-X-MAP', 'seg_5_4', 'seg_5_5'],
  ]);
  t.deepEqual(tags(text(list, 2, 3)), [one, '#EXT-X-MAP', 'seg_5_2']);
  const iFrames = list
    .iFrames()
    .map(({ plain }) => plain.toString())
    .join('');
  t.deepEqual(tags(iFrames), tags(text(list, 1, 6)));
  t.deepEqual(list.segment(3, 'x').init, keyed(3, 2, MORE_KEYS).init);
});

test('a journal has the keys of an initialization once, in front of its segments', (t) => {
  const given = [segment(0), keyed(1, 1, KEYS), keyed(2, 1, KEYS), keyed(3, 2, MORE_KEYS), segment(4)];
  const lines = journalLines(given);
  t.is(lines.split('skd://1').length, 2);
  t.deepEqual(readJournal(lines), given);
  const damaged = lines
    .split('\n')
    .filter((line) => !line.includes('skd://1'))
    .join('\n');
  t.deepEqual(readJournal(damaged), [given[0], given[3], given[4]], 'segments without their keys are not listed');
});

test('an id of a date range is known as long as its segment is listed', (t) => {
  const list = listOf([segment(7, { breaks: '#EXT-X-DATERANGE:ID="a",START-DATE="x"\n' }), segment(8)]);
  t.deepEqual(
    ['a', 'b', ''].map((id) => list.hasDateRange(id)),
    [true, false, false],
  );
  list.dropBefore(8);
  t.false(list.hasDateRange('a'));
});
