import test from 'ava';
import { DumpInfo } from '../../../../../src/publishers/hls/dump/info.ts';
import { DumpedList } from '../../../../../src/publishers/hls/dump/list.ts';
import type { GrowingText } from '../../../../../src/publishers/hls/dump/growing-file.ts';
import type { FollowedSegment } from '../../../../../src/publishers/hls/answer/segment-followers.ts';

const whole = ({ head, body, tail }: GrowingText): string => head + body + tail;

function segment(msn: number, more: Partial<FollowedSegment> = {}): FollowedSegment {
  return {
    list: 'list.m3u8',
    name: `seg_${msn}.m4s`,
    msn,
    duration: 2.5,
    wallClock: Date.UTC(2026, 0, 1, 0, 0, msn),
    discontinuity: false,
    discontinuitySequence: 3,
    gap: false,
    breaks: '',
    breaksBefore: '',
    bytes: 1,
    init: { name: 'init_0.m4s', data: Buffer.alloc(1) },
    body: () => [],
    ...more,
  };
}

test('a media playlist is video on demand, with maps, discontinuities and gaps', (t) => {
  const list = new DumpedList('list.m3u8');
  t.true(list.empty);
  list.add(segment(7));
  list.add(segment(8, { gap: true, duration: 3.4, breaks: '#EXT-X-CUE-OUT:DURATION=10\n' }));
  list.add(segment(9, { discontinuity: true, init: { name: 'init_1.m4s', data: Buffer.alloc(1) } }));
  t.is(
    whole(list),
    `#EXTM3U
#EXT-X-VERSION:8
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-TARGETDURATION:3
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:3
#EXT-X-MAP:URI="init_0.m4s"
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:07.000Z
#EXTINF:2.500000,
seg_7.m4s
#EXT-X-CUE-OUT:DURATION=10
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:08.000Z
#EXT-X-GAP
#EXTINF:3.400000,
seg_8.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="init_1.m4s"
#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:09.000Z
#EXTINF:2.500000,
seg_9.m4s
#EXT-X-ENDLIST
`,
  );
});

test('a playlist of a dump that is continued has each segment once, and says where some are missing', (t) => {
  const first = new DumpedList('list.m3u8');
  const all = new DumpedList('list.m3u8');
  for (const msn of [1, 2, 3]) first.add(segment(msn));
  for (const msn of [1, 2, 3, 4]) all.add(segment(msn));
  const resumed = new DumpedList('list.m3u8', whole(first));
  t.is(whole(resumed), whole(first));
  for (const msn of [2, 3, 4]) if (!resumed.has(segment(msn))) resumed.add(segment(msn));
  t.is(whole(resumed), whole(all));
  const whichever = new DumpedList('list.m3u8', whole(first));
  // the past may reach back further than the earlier dump
  for (const msn of [0, 1, 2, 3, 4]) if (!whichever.has(segment(msn))) whichever.add(segment(msn));
  t.is(whole(whichever), whole(all));
  t.true(whichever.has(segment(4)));
  const later = new DumpedList('list.m3u8', whole(all));
  t.false(later.has(segment(9)));
  later.add(segment(9, { duration: 6.6 }));
  t.is(
    whole(later),
    whole(all)
      .replace('TARGETDURATION:3', 'TARGETDURATION:7')
      .replace('#EXT-X-ENDLIST\n', '')
      .concat(
        '#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:09.000Z\n#EXTINF:6.600000,\nseg_9.m4s\n#EXT-X-ENDLIST\n',
      ),
  );
});

test('ad breaks that have begun earlier are written once, before the first segment and where some are missing', (t) => {
  const range = '#EXT-X-DATERANGE:ID="1",START-DATE="2026-01-01T00:00:00.000Z",PLANNED-DURATION=60\n';
  const end = '#EXT-X-DATERANGE:ID="1",START-DATE="2026-01-01T00:00:00.000Z",DURATION=9\n';
  const ts = (msn: number, more: Partial<FollowedSegment> = {}): FollowedSegment => {
    const { init: _, ...rest } = segment(msn, more);
    return rest;
  };
  const breaks = (list: GrowingText): string[] =>
    whole(list).match(/#EXT-X-DATERANGE.*\n|^seg_.*|#EXT-X-CUE.*/gm) ?? [];
  const first = new DumpedList('list.m3u8');
  first.add(ts(5, { breaksBefore: range, breaks: '#EXT-X-CUE-IN\n' }));
  first.add(ts(6, { breaksBefore: range }));
  const told = [range, '#EXT-X-CUE-IN', 'seg_5.m4s', 'seg_6.m4s'];
  t.deepEqual(breaks(first), told);
  const later = new DumpedList('list.m3u8', whole(first));
  t.deepEqual(breaks(later), told);
  t.false(later.has(ts(9)));
  later.add(ts(9, { breaksBefore: range + end }));
  t.deepEqual(breaks(later), [...told, end, 'seg_9.m4s']);
});

test('a file that is no playlist of a dump is replaced', (t) => {
  for (const text of ['', 'something', '#EXTM3U\n#EXT-X-VERSION:6\n', '#EXTM3U\n#EXTINF:1,\na\n#EXT-X-ENDLIST\n'])
    t.true(new DumpedList('list.m3u8', text).empty, text);
});

test('an info file is XML whatever is in it', (t) => {
  const info = new DumpInfo('/v/a/<s>', 'a & b\u0000\uD800\u0007 ]]>');
  info.add('/d/seg & 1.m4s', Date.UTC(2026, 0, 1));
  info.status = 'Completed';
  const text = whole(info);
  t.regex(
    text,
    /^<\?xml version="1\.0" encoding="utf-8"\?>\n<HLSDumpInfo>\n {2}<UserData>a &amp; b\uFFFD\uFFFD\uFFFD \]\]&gt;<\/UserData>/,
  );
  t.regex(text, /<Stream>\/v\/a\/&lt;s&gt;<\/Stream>\n {2}<Status>Completed<\/Status>/);
  t.regex(text, /<Item>\s*<Seq>0<\/Seq>\s*<Time>20[^<]+<\/Time>\s*<File>\/d\/seg &amp; 1\.m4s<\/File>\s*<\/Item>/);
  t.true(text.endsWith('  </Items>\n</HLSDumpInfo>\n'));
});
