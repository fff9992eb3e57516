import test from 'ava';
import HLS from 'hls-parser';
import type { Packet } from '../../../src/core/packet.ts';
import type { DataTrack } from '../../../src/core/track.ts';
import { ChunklistBuilder, type ChunklistForm } from '../../../src/packaging/playlist.ts';
import type { SegmenterOptions } from '../../../src/packaging/segmenter.ts';
import { fileNames } from '../../../src/publishers/hls/ll/names.ts';
import {
  audioPackets,
  audioTrack,
  dataTrack,
  eventPacket,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../support/media/packets.ts';
import { startSegmenter } from '../../support/media/segmenter.ts';
import { spliceInsert, timeSignal } from '../../support/media/splice.ts';
import { checkDelta } from '../../support/playlist-rules/reload-rules.ts';
import { faults } from '../../support/playlist-rules/rules.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const OPTIONS = {
  targetDuration: 2,
  partTarget: 0.501,
  partHoldBack: 1.5,
  preloadHint: true,
  skippable: true,
  ended: false,
};

const SCTE35 = dataTrack({ codec: 'SCTE35' });
const CUE = dataTrack({ id: 1025, codec: 'CUE' });

function event(track: DataTrack, data: Buffer, seconds: number, ahead = 0): Packet {
  const packet = eventPacket(track, Math.round(seconds * track.timebase.den), data);
  return { ...packet, pts: packet.dts + Math.round(ahead * track.timebase.den) };
}

const INTERSTITIAL = dataTrack({ id: 1026, codec: 'INTERSTITIAL' });

const interstitial = (seconds: number, told: object) => event(INTERSTITIAL, Buffer.from(JSON.stringify(told)), seconds);

const cue = (seconds: number, told: object) => event(CUE, Buffer.from(JSON.stringify(told)), seconds);

/** A stream with some events: of each track the lines of its playlist that tell of breaks, and of segments by number. */
function play(to: number, events: readonly Packet[], options: Partial<SegmenterOptions> = {}) {
  const { push, segmenter, packager, segments } = startSegmenter([VIDEO, AUDIO, SCTE35, CUE, INTERSTITIAL], options);
  push(interleaved(videoPackets(VIDEO, { to }), audioPackets(AUDIO, { to }), [...events]));
  const text = (id = 0, form: ChunklistForm = 'full'): string =>
    new ChunklistBuilder(fileNames({ trackId: id, type: 'video', streamKey: 'k', keepsKey: false, query: '' })).build(
      packager(id).window,
      form,
      OPTIONS,
      [],
      segmenter.breaks,
    );
  const lines = (id = 0) => {
    let msn = 0;
    return text(id)
      .split('\n')
      .flatMap((line) => {
        if (/^#EXT-X-(DATERANGE|CUE)/.test(line)) return [line];
        return line.startsWith('#EXTINF') ? [String(msn++)] : [];
      });
  };
  return { text, lines, segments, push, segmenter };
}

const at = (seconds: number) => new Date(Date.UTC(2026, 0) + seconds * 1000).toISOString();
const hex = (section: Buffer) => `0x${section.toString('hex').toUpperCase()}`;

test('a splice that is announced ahead is a date range, and begins a segment at its key frame', (t) => {
  const out = spliceInsert({ eventId: 123, out: true, duration: 30 });
  const end = spliceInsert({ eventId: 123, out: false });
  const { lines, segments, text } = play(12, [
    event(SCTE35, out, 2.5, 2.5),
    event(SCTE35, out, 3.5, 1.5),
    event(SCTE35, end, 8.5, 0.5),
    event(SCTE35, end, 8.7, 0.3),
  ]);
  const begin = `#EXT-X-DATERANGE:ID="123",START-DATE="${at(5)}"`;
  const expected = [
    '0',
    `${begin},PLANNED-DURATION=30,SCTE35-OUT=${hex(out)}`,
    '1',
    '2',
    '3',
    `${begin},END-DATE="${at(9)}",DURATION=4,SCTE35-IN=${hex(end)}`,
    '4',
    '5',
  ];
  for (const id of [0, 1]) t.deepEqual(lines(id), expected);
  t.deepEqual(
    segments(0).map(({ presentation }) => presentation),
    [0, 2, 4, 5, 7, 9, 11],
  );
  HLS.setOptions({ strictMode: true });
  const ranges = (HLS.parse(text()) as HLS.types.MediaPlaylist).segments.flatMap(({ dateRange }) => dateRange ?? []);
  t.like(ranges[0], { id: '123', start: new Date(at(5)), plannedDuration: 30 });
});

test('a cue stands in front of the segment that begins at it, and ends by itself', (t) => {
  const { lines, segments } = play(12, [cue(2.5, { cueType: 'out', duration: 4000 })]);
  const id = /cue-\d+/.exec(lines().join())?.[0];
  const begin = `#EXT-X-DATERANGE:ID="${id}",START-DATE="${at(2.5)}"`;
  const expected = [
    '0',
    `${begin},PLANNED-DURATION=4`,
    '1',
    '#EXT-X-CUE-OUT:DURATION=4',
    '2',
    '3',
    '#EXT-X-CUE-IN',
    `${begin},END-DATE="${at(6.5)}",DURATION=4`,
    '4',
    '5',
  ];
  for (const track of [0, 1]) t.deepEqual(lines(track), expected);
  t.deepEqual(
    segments(0).map(({ presentation }) => presentation),
    [0, 2, 3, 5, 7, 9, 11],
  );
});

test('a break ends early, or with the next one, and only once', (t) => {
  const { lines } = play(14, [
    cue(2.5, { cueType: 'out', duration: 60_000 }),
    cue(4.5, { cueType: 'in' }),
    cue(5.5, { cueType: 'in' }),
    cue(6.5, { cueType: 'out', duration: 60_000 }),
    cue(8.5, { cueType: 'out', duration: 1000 }),
  ]);
  const cues = lines().filter((line) => line.startsWith('#EXT-X-CUE'));
  t.deepEqual(cues, [
    '#EXT-X-CUE-OUT:DURATION=60',
    '#EXT-X-CUE-IN',
    '#EXT-X-CUE-OUT:DURATION=60',
    '#EXT-X-CUE-IN',
    '#EXT-X-CUE-OUT:DURATION=1',
    '#EXT-X-CUE-IN',
  ]);
  t.is(lines().filter((line) => line.includes('PLANNED')).length, 3);
});

test('tags leave with their segments; a break that lasts stays', (t) => {
  const out = spliceInsert({ eventId: 1, out: true, duration: 5 });
  const open = spliceInsert({ eventId: 2, out: true });
  const { text } = play(
    20,
    [
      event(SCTE35, out, 1),
      cue(1.5, { cueType: 'out', duration: 1000 }),
      event(SCTE35, open, 2),
      event(SCTE35, spliceInsert({ eventId: 3, out: true, duration: 60, autoReturn: true }), 3),
    ],
    { segmentCount: 4 },
  );
  const ids = (form: ChunklistForm) => [...text(0, form).matchAll(/DATERANGE:ID="([^"]+)"/g)].map(([, id]) => id);
  for (const form of ['full', 'delta', 'legacy'] as const) t.deepEqual(ids(form), ['2', '3']);
  t.notRegex(text(), /CUE/);
  t.true(text().indexOf('DATERANGE') < text().indexOf('EXTINF'));
});

test('a delta update has the date ranges of segments that it leaves out', (t) => {
  const { text } = play(30, [
    event(SCTE35, spliceInsert({ eventId: 1, out: true, duration: 2, autoReturn: true }), 3),
    cue(5, { cueType: 'out', duration: 2000 }),
  ]);
  const ranges = (form: ChunklistForm) => text(0, form).match(/#EXT-X-DATERANGE.*/g);
  t.regex(text(0, 'delta'), /EXT-X-SKIP/);
  t.notRegex(text(0, 'delta'), /CUE-OUT/);
  t.is(ranges('full')?.length, 4);
  t.deepEqual(ranges('delta'), ranges('full'));
});

test('a delta update has the end of a break that the first listed segment begins after', (t) => {
  const events = [cue(2.5, { cueType: 'out', duration: 3990 })];
  for (let to = 20; to < 34; to += 2) {
    const { text } = play(to, events, { segmentCount: 10 });
    const { text: before } = play(to - 0.5, events, { segmentCount: 10 });
    t.deepEqual(faults(checkDelta(before(), text(0, 'delta'), text())), [], `${to} seconds`);
  }
});

test('an event id that is used again is another break', (t) => {
  const out = spliceInsert({ eventId: 1, out: true, duration: 2 });
  const end = spliceInsert({ eventId: 1, out: false });
  const { text } = play(80, [
    event(SCTE35, out, 3),
    event(SCTE35, end, 5),
    event(SCTE35, out, 40),
    event(SCTE35, end, 42),
  ]);
  const told = [...text().matchAll(/ID="([^"]+)",START-DATE="([^"]+)".*SCTE35-(OUT|IN)/g)].map(([, id, date, kind]) => [
    id,
    date,
    kind,
  ]);
  const second = told[2]?.[0];
  t.regex(String(second), /^1-\d+$/);
  t.deepEqual(told, [
    ['1', at(3), 'OUT'],
    ['1', at(3), 'IN'],
    [second, at(40), 'OUT'],
    [second, at(40), 'IN'],
  ]);
});

test('the publisher returns on another timeline: a break ends by the wall clock', (t) => {
  const { push, segmenter, lines } = play(4, [cue(2.5, { cueType: 'out', duration: 3000 })]);
  segmenter.finish();
  segmenter.setTracks([VIDEO, AUDIO, CUE], { at: (media) => Date.UTC(2026, 0) + (media - 996) * 1000 });
  push(interleaved(videoPackets(VIDEO, { from: 1000, to: 1008 }), audioPackets(AUDIO, { from: 1000, to: 1008 })));
  const told = lines();
  t.true(told.indexOf('#EXT-X-CUE-IN') > told.indexOf('#EXT-X-CUE-OUT:DURATION=3'));
  t.true(told.some((line) => line.includes(`END-DATE="${at(5.5)}"`)));
});

test('the number of remembered breaks is limited, and invalid ones are left out', (t) => {
  const many = Array.from({ length: 200 }, (_, index) =>
    event(SCTE35, spliceInsert({ eventId: index, out: true }), 1 + index / 100),
  );
  const nonsense = [
    '',
    '{}',
    'null',
    '[]',
    '{"cueType":"out"}',
    '{"cueType":"out","duration":-1}',
    '{"cueType":"out","duration":1e999}',
    '\u0000',
  ].map((text) => event(CUE, Buffer.from(text), 3.5));
  const { lines } = play(8, [...many, ...nonsense]);
  const ranges = lines().filter((line) => line.startsWith('#'));
  t.is(ranges.length, 64);
  t.regex(ranges[0] ?? '', /ID="136"/);
});

test('long sections of a publisher do not make the playlists long', (t) => {
  const descriptor = Buffer.concat([Buffer.of(0x80, 250), Buffer.alloc(250)]);
  const section = timeSignal(...Array.from({ length: 15 }, () => descriptor));
  const many = Array.from({ length: 50 }, (_, index) => event(SCTE35, section, 1 + index / 20));
  const last = spliceInsert({ eventId: 7, out: true });
  const { text } = play(8, [...many, event(SCTE35, last, 5)]);
  t.true(text().length < 64 * 1024, `${text().length} characters`);
  t.true(text().includes(hex(section)));
  t.true(text().includes(hex(last)));
});

for (const reordering of [0, 6000])
  test(`hinted parts come, also where a break begins a segment early, reordered by ${reordering} ticks`, (t) => {
    const { push, packager } = startSegmenter([VIDEO, AUDIO, SCTE35, CUE]);
    const wrong: string[] = [];
    const { window } = packager(0);
    let hinted = window.next;
    window.on('part', ({ msn }, { index }) => {
      if (hinted !== undefined && (hinted.msn !== msn || hinted.part !== index))
        wrong.push(`${hinted.msn}.${hinted.part} was hinted at, and ${msn}.${index} came`);
      hinted = window.next;
    });
    const frames = videoPackets(VIDEO, { to: 12 }).map((frame) => ({ ...frame, pts: frame.pts + reordering }));
    const cues = [cue(2.5, { cueType: 'out', duration: 2000 }), cue(7.05, { cueType: 'out', duration: 1500 })];
    // by the presentation times of the key frames, not by when they are decoded
    const ahead = event(SCTE35, spliceInsert({ eventId: 1, out: true }), 9.2, 0.85);
    push(interleaved(frames, audioPackets(AUDIO, { to: 12 }), [...cues, ahead]));
    t.deepEqual(wrong, []);
    const later = reordering / VIDEO.timebase.den;
    t.deepEqual(
      window.listed.map(({ presentation }) => Number((presentation - later).toFixed(6))),
      [0, 2, 3, 5, 7, 8, 9],
    );
  });

test('an interstitial is a date range of its class, in front of the same segment of each rendition', (t) => {
  const { lines, segments, text } = play(12, [
    interstitial(2.5, {
      id: 'ad-1',
      assetUri: 'https://ads.example.com/a "b".m3u8',
      startOffset: 2500,
      duration: 4000,
      resumeOffset: 0,
      playoutLimit: 3500,
      snap: ['out', 'in'],
      restrict: ['skip', 'jump'],
    }),
    interstitial(3, { id: 'ad-1', assetUri: 'https://ads.example.com/repeated.m3u8' }),
    interstitial(4, { id: 'ad-2', assetList: 'https://ads.example.com/list?a=1,2' }),
    interstitial(4, { assetList: 'ftp://ads.example.com/' }),
    interstitial(4, { id: 'a"b', assetList: 'https://ads.example.com/' }),
  ]);
  const first = [
    `#EXT-X-DATERANGE:ID="interstitial-ad-1",START-DATE="${at(5)}",DURATION=4`,
    'CLASS="com.apple.hls.interstitial"',
    'X-ASSET-URI="https://ads.example.com/a%20%22b%22.m3u8",X-RESUME-OFFSET=0,X-PLAYOUT-LIMIT=3.5,X-SNAP="OUT,IN",X-RESTRICT="SKIP,JUMP"',
  ].join();
  const second = `#EXT-X-DATERANGE:ID="interstitial-ad-2",START-DATE="${at(4)}",CLASS="com.apple.hls.interstitial",X-ASSET-LIST="https://ads.example.com/list?a=1,2"`;
  for (const id of [0, 1]) t.deepEqual(lines(id), ['0', first, '1', second, '2', '3', '4', '5']);
  t.deepEqual(
    segments(0).map(({ presentation }) => presentation),
    [0, 2, 4, 5, 7, 9, 11],
  );
  HLS.setOptions({ strictMode: true });
  const ranges = (HLS.parse(text()) as HLS.types.MediaPlaylist).segments.flatMap(({ dateRange }) => dateRange ?? []);
  t.like(ranges[0], {
    id: 'interstitial-ad-1',
    classId: 'com.apple.hls.interstitial',
    start: new Date(at(5)),
    duration: 4,
  });
});

test('an interstitial stays listed as long as it lasts, and no longer', (t) => {
  const events = [
    interstitial(1, { id: 'long', assetUri: 'https://ads.example.com/', duration: 9000 }),
    interstitial(1, { id: 'point', assetUri: 'https://ads.example.com/' }),
  ];
  const listed = (to: number) =>
    Array.from(
      play(to, events, { segmentCount: 3 })
        .text()
        .matchAll(/interstitial-\w+/g),
      String,
    ).sort();
  t.deepEqual(listed(4), ['interstitial-long', 'interstitial-point']);
  t.deepEqual(listed(14), ['interstitial-long']);
  t.deepEqual(listed(24), []);
});

test('a break that a splice begins is an interstitial where the application says so', (t) => {
  const spliced: object[] = [];
  const { lines } = play(
    12,
    [
      event(SCTE35, spliceInsert({ eventId: 7, out: true, duration: 3 }), 2.5, 2.5),
      event(SCTE35, spliceInsert({ eventId: 7, out: true, duration: 3 }), 3.5, 1.5),
      event(SCTE35, spliceInsert({ eventId: 7, out: false }), 7.5, 0.5),
      event(SCTE35, spliceInsert({ eventId: 8, out: true }), 9.5, 0.5),
    ],
    {
      breaks: {
        interstitialFor: (one) => {
          spliced.push(one);
          return one.eventId === 7 ? { assetList: 'https://ads.example.com/7', duration: 3000 } : undefined;
        },
      },
    },
  );
  t.deepEqual(spliced, [
    { eventId: 7, durationMs: 3000, date: Date.parse(at(5)) },
    { eventId: 8, durationMs: undefined, date: Date.parse(at(10)) },
  ]);
  const shown = lines().filter((line) => line.includes('CLASS='));
  t.is(shown.length, 1);
  t.regex(
    String(shown[0]),
    new RegExp(
      `^#EXT-X-DATERANGE:ID="interstitial-\\d+",START-DATE="${at(5)}",DURATION=3,CLASS=[^,]*,X-ASSET-LIST="https://ads.example.com/7"$`,
    ),
  );
});

test('a date range has no id that viewers who go back find at another', (t) => {
  const events = [
    event(SCTE35, spliceInsert({ eventId: 7, out: true, duration: 3 }), 2.5),
    interstitial(2.5, { id: 'ad', assetUri: 'https://ads.example.com/' }),
    interstitial(3.5, { id: 'new', assetUri: 'https://ads.example.com/' }),
  ];
  const { lines } = play(8, events, { breaks: { wasListed: (id) => ['7', 'interstitial-ad'].includes(id) } });
  const ids = lines().flatMap((line) => /:ID="([^"]*)"/.exec(line)?.[1] ?? []);
  t.is(ids.length, 3);
  t.regex(ids.join(), /^7-\d+,interstitial-ad-\d+,interstitial-new$/);
});

/** Ids of the interstitials that a playlist lists. */
const shownIn = (lines: readonly string[]): string[] =>
  lines.flatMap((line) => /ID="(interstitial-[^"]*)".*CLASS=/.exec(line)?.[1] ?? []);

test('repeats of an interstitial are one, also where the past has its id, and a later one is another', (t) => {
  const ad = (seconds: number) =>
    interstitial(seconds, { id: 'ad', assetUri: 'https://ads.example.com/', duration: 10_000 });
  const again = [ad(1), ad(2), ad(12), ad(29), ad(35), ad(36)];
  t.is(shownIn(play(40, again).lines()).length, 2);
  const ids = shownIn(play(40, again, { breaks: { wasListed: (id) => id === 'interstitial-ad' } }).lines());
  t.is(new Set(ids).size, 2);
  t.is(ids.length, 2);
  t.false(ids.includes('interstitial-ad'));
});

test('a break within a break makes no interstitial of its own', (t) => {
  const out = (eventId: number, duration: number, at: number) =>
    event(SCTE35, spliceInsert({ eventId, out: true, duration }), at);
  const end = (eventId: number, at: number) => event(SCTE35, spliceInsert({ eventId, out: false }), at);
  const events = [out(1, 6, 1), out(2, 3, 1), out(3, 3, 4), out(4, 10, 8), end(4, 10), out(5, 3, 11)];
  const asked: (number | undefined)[] = [];
  play(16, events, {
    breaks: {
      interstitialFor: ({ eventId }) => {
        asked.push(eventId);
        return { assetList: 'https://ads.example.com/' };
      },
    },
  });
  t.deepEqual(asked, [1, 4, 5]);
});

test('long URLs of interstitials push no break out that is under way', (t) => {
  const url = `https://ads.example.com/${'a'.repeat(1900)}`;
  const ads = Array.from({ length: 40 }, (_, i) => interstitial(3 + i / 10, { id: `ad-${i}`, assetUri: url }));
  const { lines, text } = play(14, [cue(1, { cueType: 'out', duration: 9000 }), ...ads]);
  t.deepEqual(
    lines().filter((line) => line.startsWith('#EXT-X-CUE')),
    ['#EXT-X-CUE-OUT:DURATION=9', '#EXT-X-CUE-IN'],
  );
  t.true(text().length < 48 * 1024);
});

test('the URL of an asset names no variable of the playlist', (t) => {
  const { text } = play(4, [interstitial(1, { assetUri: 'https://ads.example.com/{$a}?b={$c}#{$d}' })]);
  t.notRegex(text(), /\{\$/);
  t.regex(text(), /\?b=%7B\$c%?/);
});
