import test from 'ava';
import { PastList } from '../../../../../src/publishers/hls/rewind/past-list.ts';
import { firstAfterGaps, withPast, type PastOptions } from '../../../../../src/publishers/hls/rewind/with-past.ts';

const INIT = 'init_5.m4s';

function pastOf(from: number, to: number, gaps: readonly number[] = [], keys = ''): PastList {
  const past = new PastList('');
  for (let msn = from; msn < to; msn++)
    past.add({
      name: `seg_5_${msn}_v.m4s`,
      msn,
      duration: 2,
      wallClock: msn * 2000,
      discontinuity: msn === 3,
      discontinuitySequence: msn > 3 ? 1 : 0,
      gap: gaps.includes(msn),
      breaks: '',
      init: { name: INIT, ...(keys !== '' && { keys }) },
    });
  return past;
}

const HEAD =
  '#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n' +
  '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-PART-INF:PART-TARGET=0.5\n';
const GAP = '#EXT-X-GAP\n';
const MAP = `#EXT-X-MAP:URI="${INIT}"\n`;
const END = '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_5_12_0_v.m4s"\n';
const lines = (msn: number, tag = ''): string =>
  `#EXT-X-PROGRAM-DATE-TIME:${new Date(msn * 2000).toISOString()}\n${tag}#EXTINF:2.000000,\nseg_5_${msn}_v.m4s\n`;
const EDGE = `${HEAD}#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n${MAP}${lines(10)}${lines(11)}${END}`;

function compose(list: string, past: PastList, options: Partial<PastOptions> = {}): string | undefined {
  const pieces = withPast(list, past, { form: 'full', event: false, longest: 2, ...options });
  return pieces?.map(({ plain }) => plain.toString()).join('');
}

const numbersIn = (list = ''): number[] => [...list.matchAll(/^seg_5_(\d+)_/gm)].map(([, msn]) => Number(msn));

test('the past comes first, with its numbers, and the initialization is named once', (t) => {
  const list = compose(EDGE, pastOf(1, 12));
  t.true(
    list?.startsWith(
      '#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n' +
        '#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12\n#EXT-X-PART-INF:PART-TARGET=0.5\n' +
        `#EXT-X-MEDIA-SEQUENCE:1\n${MAP}#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:02.000Z\n`,
    ),
  );
  t.deepEqual(numbersIn(list), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  t.is(list?.split('EXT-X-MAP').length, 2);
  t.true(list?.endsWith(lines(11) + END));
});

test('discontinuities before the past are counted', (t) => {
  t.true(compose(EDGE, pastOf(5, 12))?.includes('#EXT-X-MEDIA-SEQUENCE:5\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n'));
  t.false(compose(EDGE, pastOf(3, 12))?.includes('DISCONTINUITY-SEQUENCE'));
});

test('a delta update leaves out segments that end before the skip boundary', (t) => {
  const list = compose(EDGE, pastOf(0, 12), { form: 'delta' });
  // six target durations: segments 6 to 11
  t.true(list?.includes(`#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-SKIP:SKIPPED-SEGMENTS=6\n${MAP}`));
  t.deepEqual(numbersIn(list), [6, 7, 8, 9, 10, 11]);
});

test('a delta update has what a player got before gaps were listed, for as long as that may be updated', (t) => {
  // gaps of a restart are in the past, in the present playlist, or in both
  const inPast = compose(EDGE, pastOf(0, 12, [5, 6, 7, 8]), { form: 'delta' });
  t.true(inPast?.includes('#EXT-X-SKIP:SKIPPED-SEGMENTS=2\n'));
  t.deepEqual(numbersIn(inPast), [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  const edge = `${HEAD}#EXT-X-MEDIA-SEQUENCE:8\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n${MAP}${lines(8)}${lines(9, GAP)}${lines(10, GAP)}${lines(11)}`;
  t.deepEqual(numbersIn(compose(edge, pastOf(0, 9), { form: 'delta' })), [4, 5, 6, 7, 8, 9, 10, 11]);
});

test('a delta update of a short past leaves out nothing', (t) => {
  const list = compose(EDGE, pastOf(8, 12), { form: 'delta' });
  t.false(list?.includes('EXT-X-SKIP'));
  t.deepEqual(numbersIn(list), [8, 9, 10, 11]);
});

test('a delta update skips the whole past of a window that reaches the skip boundary', (t) => {
  const window = [10, 11, 12, 13, 14, 15, 16].map((msn) => lines(msn)).join('');
  const list = compose(`${HEAD}#EXT-X-MEDIA-SEQUENCE:10\n${MAP}${window}`, pastOf(0, 17), {
    form: 'delta',
  });
  t.deepEqual(numbersIn(list), [10, 11, 12, 13, 14, 15, 16]);
  t.true(list?.includes(`#EXT-X-SKIP:SKIPPED-SEGMENTS=10\n${MAP}`));
});

test('a playlist without delivery directives gets no delta updates', (t) => {
  const edge = `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:10\n${lines(10)}`;
  const list = compose(edge, pastOf(0, 11), { form: 'delta', event: true });
  t.true(
    list?.startsWith(
      '#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-MEDIA-SEQUENCE:0\n',
    ),
  );
  t.is(numbersIn(list).length, 11);
});

test('gaps at the head of the playlist give way to segments that the past has', (t) => {
  const gaps = lines(8, GAP) + lines(9, GAP) + lines(10, GAP);
  const edge = `${HEAD}#EXT-X-MEDIA-SEQUENCE:8\n${MAP}${gaps}#EXT-X-DISCONTINUITY\n${lines(11)}`;
  const list = compose(edge, pastOf(5, 12, [10]));
  t.deepEqual(numbersIn(list), [5, 6, 7, 8, 9, 10, 11]);
  t.is(list?.split(GAP).length, 2);
  t.true(list?.includes(lines(10, GAP)));
  t.is(list?.split('EXT-X-MAP').length, 2);
});

test('gaps at the head of the playlist give way to gaps that the past lists at other times', (t) => {
  const later = lines(9, GAP).replace('00:00:18', '00:10:00');
  const edge = `${HEAD}#EXT-X-MEDIA-SEQUENCE:9\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n${MAP}${later}#EXT-X-DISCONTINUITY\n${lines(10)}`;
  const list = compose(edge, pastOf(5, 11, [9]));
  t.deepEqual(numbersIn(list), [5, 6, 7, 8, 9, 10]);
  t.true(list?.includes(lines(9, GAP)));
  t.false(list?.includes('00:10:00'));
});

test('the number after the gaps at the head of a playlist', (t) => {
  const edge = `${HEAD}#EXT-X-MEDIA-SEQUENCE:8\n${MAP}${lines(8, GAP)}${lines(9, GAP)}#EXT-X-DISCONTINUITY\n${lines(10)}${lines(11, GAP)}`;
  t.is(firstAfterGaps(edge), 10);
  t.is(firstAfterGaps(EDGE), 10);
  t.is(firstAfterGaps('#EXTM3U\n'), undefined);
});

test('the initialization of gaps that give way stays in force if it is another one', (t) => {
  const other = '#EXT-X-MAP:URI="init_5_v1.m4s"\n';
  const edge = `${HEAD}#EXT-X-MEDIA-SEQUENCE:10\n${other}${lines(10, GAP)}#EXT-X-DISCONTINUITY\n${lines(11)}`;
  const list = compose(edge, pastOf(5, 11));
  t.true(list?.includes(`seg_5_10_v.m4s\n${other}#EXT-X-DISCONTINUITY\n${lines(11)}`));
});

test('nothing is put in front where numbers would be missing, or of a text that is no playlist', (t) => {
  t.is(compose(EDGE, pastOf(0, 9)), undefined);
  t.is(compose('', pastOf(0, 12)), undefined);
});

test('a playlist without a past offers what it will offer with one', (t) => {
  for (const past of [new PastList(''), pastOf(10, 12)]) {
    const list = compose(EDGE, past, { event: true });
    t.true(list?.includes('PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12\n'));
    t.true(list?.includes('#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n'));
    t.true(list?.endsWith(`#EXT-X-DISCONTINUITY-SEQUENCE:1\n${MAP}${lines(10)}${lines(11)}${END}`));
  }
});

test('a delta update has the date ranges of segments that it leaves out', (t) => {
  const past = pastOf(0, 0);
  const range = (id: number): string => `#EXT-X-DATERANGE:ID="${id}",START-DATE="1970-01-01T00:00:00Z"\n`;
  for (let msn = 0; msn < 12; msn++)
    past.add({
      ...{
        name: `seg_5_${msn}_v.m4s`,
        msn,
        duration: 2,
        wallClock: msn * 2000,
        discontinuity: false,
      },
      ...{ discontinuitySequence: 0, gap: false, init: { name: INIT } },
      breaks: `${range(msn)}#EXT-X-CUE-OUT:DURATION=2\n`,
    });
  past.dropBefore(2);
  const list = compose(EDGE, past, { form: 'delta' });
  const skipped = [2, 3, 4, 5].map(range).join('');
  t.true(list?.includes(`#EXT-X-SKIP:SKIPPED-SEGMENTS=4\n${skipped}${MAP}${range(6)}`));
});

test('ad breaks of the past that last until now stay in front of the segments', (t) => {
  const range = '#EXT-X-DATERANGE:ID="7",START-DATE="1970-01-01T00:00:04.000Z"\n';
  const list = compose(EDGE.replace(MAP, range + MAP), pastOf(1, 12));
  t.true(list?.includes(`seg_5_9_v.m4s\n${range}${lines(10)}`));
});

test('a window that begins with another packager follows a discontinuity', (t) => {
  const edge = EDGE.replace('DISCONTINUITY-SEQUENCE:1', 'DISCONTINUITY-SEQUENCE:2');
  const list = compose(edge, pastOf(1, 10));
  t.true(list?.includes(`seg_5_9_v.m4s\n#EXT-X-DISCONTINUITY\n${lines(10)}`));
  t.false(compose(EDGE, pastOf(1, 10))?.includes(`seg_5_9_v.m4s\n#EXT-X-DISCONTINUITY`));
});

test('the target duration is that of the longest segment of the past', (t) => {
  const offered = EDGE.replace('PART-HOLD-BACK=1.5', 'PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12');
  const list = compose(offered, pastOf(0, 12), { longest: 3.4, form: 'delta' });
  t.regex(list ?? '', /^#EXT-X-TARGETDURATION:3$/m);
  t.regex(list ?? '', /^#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=18$/m);
  // six target durations: segments 3 to 11
  t.deepEqual(numbersIn(list), [3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

const KEYS = '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://1"\n';
const tagsIn = (list = ''): string[] => [...list.matchAll(/^#EXT-X-(?:KEY:.*|MAP:.*)/gm)].map(([tag]) => tag);

test('keys in force are named once, across the begin of the present playlist', (t) => {
  const edge = EDGE.replace(MAP, KEYS + MAP);
  t.deepEqual(tagsIn(compose(edge, pastOf(1, 12, [], KEYS))), [KEYS.trim(), MAP.trim()]);
  const next = MAP.replace('init_5', 'init_6');
  t.deepEqual(tagsIn(compose(EDGE.replace(MAP, next), pastOf(1, 12, [], KEYS))), [
    ...[KEYS.trim(), MAP.trim(), '#EXT-X-KEY:METHOD=NONE', next.trim()],
  ]);
  t.deepEqual(
    tagsIn(compose(EDGE.replace(MAP, KEYS + next), pastOf(1, 12))),
    [MAP, KEYS, next].map((tag) => tag.trim()),
  );
  // gaps of the present playlist that the past has: the keys that they named stay in force
  const gaps = `${HEAD}#EXT-X-MEDIA-SEQUENCE:10\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n${KEYS}${next}${lines(10, GAP)}${lines(11)}`;
  t.deepEqual(
    tagsIn(compose(gaps, pastOf(1, 11))),
    [MAP, KEYS, next].map((tag) => tag.trim()),
  );
});

test('a playlist that reaches back is of the version that gaps need, before there are any', (t) => {
  const versionOf = (list: string, past: PastList): string | undefined =>
    /^#EXT-X-VERSION:(.*)$/m.exec(compose(list, past) ?? '')?.[1];
  const ofTs = `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:10\n${lines(10)}`;
  for (const past of [new PastList(''), pastOf(1, 11), pastOf(1, 11, [4])]) {
    t.is(versionOf(ofTs, past), '8');
    t.is(versionOf(EDGE, past), '9');
  }
});
