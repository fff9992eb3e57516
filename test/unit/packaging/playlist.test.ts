import test, { type ExecutionContext } from 'ava';
import HLS from 'hls-parser';
import {
  ChunklistBuilder,
  isSkippable,
  partDuration,
  type ChunklistForm,
  type ChunklistOptions,
} from '../../../src/packaging/playlist.ts';
import { Segment, type Init } from '../../../src/packaging/segment.ts';
import { Window } from '../../../src/packaging/window.ts';
import { fileNames } from '../../../src/publishers/hls/ll/names.ts';
import { videoTrack } from '../../support/media/packets.ts';

const OPTIONS: ChunklistOptions = {
  targetDuration: 2,
  partTarget: 0.501,
  partHoldBack: 1.5,
  preloadHint: true,
  skippable: true,
  ended: false,
};
const NAMES = fileNames({ trackId: 0, type: 'video', streamKey: 'Key45678', keepsKey: false, query: '' });
const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const CLOCK = { at: (media: number) => START + media * 1000 };

function init(version: number): Init {
  return { version, track: videoTrack(), codec: 'avc1.64001f', data: Buffer.alloc(1) };
}

interface Plan {
  readonly parts: number;
  readonly discontinuity?: boolean;
  readonly init?: Init;
}

/** A window of segments of 0.5 s parts; the last plan is of the growing one. */
function fill(count: number, plans: readonly Plan[]): Window {
  const window = new Window({ segmentCount: count, leastSeconds: () => 0 });
  const first = init(0);
  plans.forEach((plan, msn) => {
    if (msn > 0) window.complete();
    window.start(new Segment(msn, plan.init ?? first, plan.discontinuity ?? false, CLOCK, msn * 2));
    for (let index = 0; index < plan.parts; index++) {
      window.add({ index, duration: 0.5, independent: index === 0, bytes: 0, data: Buffer.alloc(10) });
    }
  });
  return window;
}

function build(window: Window, form: ChunklistForm = 'full', options: Partial<ChunklistOptions> = {}): string {
  const reports = [{ uri: 'chunklist_1_audio_Key45678_llhls.m3u8', msn: 4, part: 1 }];
  return new ChunklistBuilder(NAMES).build(window, form, { ...OPTIONS, ...options }, reports);
}

/** hls-parser's reading; it throws, or reports, what breaks the specification. */
function parse(t: ExecutionContext, text: string): HLS.types.MediaPlaylist {
  HLS.setOptions({ strictMode: true });
  const playlist = HLS.parse(text);
  t.false(playlist.isMasterPlaylist);
  return playlist as HLS.types.MediaPlaylist;
}

test('a playlist, line for line', (t) => {
  const window = fill(2, [{ parts: 4 }, { parts: 4 }, { parts: 2 }, { parts: 1 }]);
  t.is(
    build(window),
    `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12
#EXT-X-PART-INF:PART-TARGET=0.501
#EXT-X-MEDIA-SEQUENCE:1
#EXT-X-MAP:URI="init_0_video_Key45678_llhls.m4s"
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:07.678Z
#EXT-X-PART:DURATION=0.500001,URI="part_0_1_0_video_Key45678_llhls.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.500001,URI="part_0_1_1_video_Key45678_llhls.m4s"
#EXT-X-PART:DURATION=0.500001,URI="part_0_1_2_video_Key45678_llhls.m4s"
#EXT-X-PART:DURATION=0.500001,URI="part_0_1_3_video_Key45678_llhls.m4s"
#EXTINF:2.000000,
seg_0_1_video_Key45678_llhls.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:09.678Z
#EXT-X-PART:DURATION=0.500001,URI="part_0_2_0_video_Key45678_llhls.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.500001,URI="part_0_2_1_video_Key45678_llhls.m4s"
#EXTINF:1.000000,
seg_0_2_video_Key45678_llhls.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:11.678Z
#EXT-X-PART:DURATION=0.500001,URI="part_0_3_0_video_Key45678_llhls.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_0_3_1_video_Key45678_llhls.m4s"
#EXT-X-RENDITION-REPORT:URI="chunklist_1_audio_Key45678_llhls.m3u8",LAST-MSN=4,LAST-PART=1
`,
  );
});

test('hls-parser reads what was meant', (t) => {
  const window = fill(10, [...Array(9).fill({ parts: 4 }), { parts: 3 }]);
  const playlist = parse(t, build(window));
  t.is(playlist.version, 9);
  t.is(playlist.targetDuration, 2);
  t.is(playlist.partTargetDuration, 0.501);
  t.is(playlist.mediaSequenceBase, 0);
  t.like(playlist.lowLatencyCompatibility, { canBlockReload: true, canSkipUntil: 12, partHoldBack: 1.5 });
  const complete = playlist.segments.filter(({ uri }) => uri !== '');
  t.deepEqual(
    complete.map(({ duration }) => duration),
    Array(9).fill(2),
  );
  t.deepEqual(
    playlist.renditionReports.map(({ lastMSN, lastPart }) => [lastMSN, lastPart]),
    [[4, 1]],
  );
  t.is(playlist.segments[0]?.programDateTime?.getTime(), START);
});

test('parts are listed for the last three segments, the growing one counted', (t) => {
  const text = build(fill(10, [...Array(6).fill({ parts: 4 }), { parts: 1 }]));
  const listed = [...text.matchAll(/#EXT-X-PART:.*part_0_(\d+)_/g)].map(([, msn]) => Number(msn));
  t.deepEqual([...new Set(listed)], [4, 5, 6]);
});

test('legacy players see complete segments and nothing of low latency', (t) => {
  const text = build(fill(10, [{ parts: 4 }, { parts: 4 }, { parts: 2 }]), 'legacy');
  t.notRegex(text, /PART|PRELOAD|RENDITION|SERVER-CONTROL|SKIP/);
  const playlist = parse(t, text);
  t.is(playlist.version, 8);
  t.is(playlist.segments.length, 2);
});

test('a delta update skips what is more than six targets from the end', (t) => {
  const window = fill(10, [...Array(10).fill({ parts: 4 }), { parts: 2 }]);
  const text = build(window, 'delta');
  t.regex(text, /#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-SKIP:SKIPPED-SEGMENTS=4\n#EXT-X-MAP:URI="init_0_video_/);
  t.is(text.match(/EXT-X-MAP/g)?.length, 1);
  t.is(parse(t, text).segments.filter(({ uri }) => uri !== '').length, 6);
});

test('a delta update names the init of the segments after the skipped ones', (t) => {
  const other = { init: init(1) };
  const plans = [{ parts: 4 }, { parts: 4, discontinuity: true, ...other }, ...Array(8).fill({ parts: 4, ...other })];
  const text = build(fill(10, [...plans, { parts: 2, ...other }]), 'delta');
  t.regex(text, /SKIPPED-SEGMENTS=4\n#EXT-X-MAP:URI="init_0_video_Key45678_v1_llhls.m4s"\n#EXT-X-PROGRAM/);
  t.notRegex(text, /DISCONTINUITY/);
});

test('a delta update of a short playlist, or where none is offered, is the whole playlist', (t) => {
  const short = fill(10, [{ parts: 4 }, { parts: 4 }, { parts: 1 }]);
  t.is(build(short, 'delta'), build(short));
  const unoffered = build(fill(10, [...Array(10).fill({ parts: 4 }), { parts: 2 }]), 'delta', { skippable: false });
  t.notRegex(unoffered, /SKIP/);
  t.regex(unoffered, /#EXT-X-VERSION:8\n/);
  t.true(isSkippable(12, 2));
  t.false(isSkippable(11.9, 2));
});

test('a discontinuity has its init, and its number lives on when it has left', (t) => {
  const other = init(1);
  const plans = [
    { parts: 4 },
    { parts: 4, discontinuity: true, init: other },
    ...Array(3).fill({ parts: 4, init: other }),
  ];
  const present = build(fill(10, plans));
  t.regex(present, /#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI="init_0_video_Key45678_v1_llhls.m4s"\n#EXT-X-PROGRAM/);
  t.notRegex(present, /DISCONTINUITY-SEQUENCE/);
  const playlist = parse(t, present);
  t.true(playlist.segments[1]?.discontinuity);
  const gone = build(fill(2, plans));
  t.regex(gone, /#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXT-X-MAP:URI="init_0_video_Key45678_v1_llhls.m4s"\n/);
});

test('an init that changes with the next segment is announced with its first part', (t) => {
  const window = fill(10, [{ parts: 4 }, { parts: 0, discontinuity: true, init: init(1) }]);
  t.true(
    build(window).endsWith(`#EXT-X-PRELOAD-HINT:TYPE=MAP,URI="init_0_video_Key45678_v1_llhls.m4s"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_0_1_0_video_Key45678_llhls.m4s"
#EXT-X-RENDITION-REPORT:URI="chunklist_1_audio_Key45678_llhls.m3u8",LAST-MSN=4,LAST-PART=1
`),
  );
});

test('a segment in whose time nothing came is a gap', (t) => {
  const window = fill(10, [{ parts: 4 }, { parts: 0 }, { parts: 1 }]);
  t.regex(build(window), /#EXT-X-GAP\n#EXTINF:0\.000000,\nseg_0_1_video/);
  // RFC 8216bis section 8
  t.is(parse(t, build(window, 'full', { skippable: false })).version, 8);
  t.is(parse(t, build(window, 'legacy')).version, 8);
  t.is(parse(t, build(window, 'full', { ended: true })).version, 8);
});

test('the hint after a part that is likely to be the last is at the next segment', (t) => {
  const window = fill(10, [{ parts: 4 }, { parts: 3 }]);
  window.add({ index: 3, duration: 0.5, independent: false, bytes: 0, data: Buffer.alloc(10) }, true);
  t.regex(build(window), /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_0_2_0_video_Key45678_llhls.m4s"\n/);
  window.add({ index: 4, duration: 0.5, independent: false, bytes: 0, data: Buffer.alloc(10) });
  t.regex(build(window), /#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_0_1_5_video_Key45678_llhls.m4s"\n/);
});

test('a part is said to last one to two microseconds longer than it does', (t) => {
  for (const seconds of [0.5, 1 / 3, 0.4904761904, 0.5005, 2])
    t.true(partDuration(seconds) - seconds > 0.99e-6 && partDuration(seconds) - seconds < 2.01e-6, `${seconds}`);
});

test('a playlist has no hint when none is wanted', (t) => {
  t.notRegex(build(fill(10, [{ parts: 2 }]), 'full', { preloadHint: false }), /PRELOAD/);
});

test('names carry the configured query', (t) => {
  const text = new ChunklistBuilder(
    fileNames({ trackId: 3, type: 'audio', streamKey: 'k', keepsKey: false, query: '?a=b' }),
  ).build(fill(3, [{ parts: 4 }, { parts: 1 }]), 'full', OPTIONS, []);
  for (const uri of text.matchAll(/URI="([^"]+)"|^([^#].*)$/gm)) t.regex(uri[1] ?? uri[2] ?? '', /\.m4s\?a=b$/);
});
