import test from 'ava';
import { checkMasterPlaylist } from '../../support/playlist-rules/master-rules.ts';
import { checkMediaPlaylist } from '../../support/playlist-rules/media-rules.ts';
import { checkDelta, checkReloads } from '../../support/playlist-rules/reload-rules.ts';
import { checkRenditions } from '../../support/playlist-rules/rendition-rules.ts';
import { faults, RULES, type Finding, type Rule } from '../../support/playlist-rules/rules.ts';

/** What is put in the place of what, so that a playlist without a finding breaks a rule. */
type Edit = readonly [from: string, to: string];

function edited(text: string, edits: readonly Edit[]): string {
  return edits.reduce((now, [from, to]) => {
    if (!now.includes(from)) throw new Error(`there is no ${JSON.stringify(from)}`);
    return now.replace(from, to);
  }, text);
}

const SECONDS = 4;
const dateOf = (msn: number) => new Date(Date.UTC(2026, 0, 2) + msn * SECONDS * 1000).toISOString();
const RANGE = `#EXT-X-DATERANGE:ID="ad",START-DATE="${dateOf(9)}",PLANNED-DURATION=8,SCTE35-OUT=0xFC30\n`;
const REPORT = '#EXT-X-RENDITION-REPORT:URI="audio.m3u8",LAST-MSN=14,LAST-PART=1\n';

/**
 * A low-latency playlist with segments from `first` on, and some parts of segment `growing`; before segment 6 there is a
 * discontinuity, before 9 a date range.
 */
function live(first: number, growing: number, parts: number, skipped = 0): string {
  let text = `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:4
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=24,PART-HOLD-BACK=3,HOLD-BACK=12
#EXT-X-PART-INF:PART-TARGET=1
#EXT-X-MEDIA-SEQUENCE:${first}
#EXT-X-DISCONTINUITY-SEQUENCE:${first > 6 ? 3 : 2}\n`;
  if (skipped > 0) text += `#EXT-X-SKIP:SKIPPED-SEGMENTS=${skipped}\n`;
  for (let msn = first + skipped; msn <= growing; msn++) {
    if (msn === 6) text += '#EXT-X-DISCONTINUITY\n';
    if (msn === first + skipped || msn === 6) text += `#EXT-X-MAP:URI="init_${msn < 6 ? 0 : 1}.mp4"\n`;
    if (msn === 9 || (msn === first + skipped && first <= 9 && msn > 9)) text += RANGE;
    if (msn < growing || parts > 0) text += `#EXT-X-PROGRAM-DATE-TIME:${dateOf(msn)}\n`;
    const listed = msn === growing ? parts : growing - msn <= 2 ? SECONDS : 0;
    for (let index = 0; index < listed; index++)
      text += `#EXT-X-PART:DURATION=1,URI="part_${msn}_${index}.m4s"${index === 0 ? ',INDEPENDENT=YES' : ''}\n`;
    if (msn < growing) text += `#EXTINF:4.00000,\nseg_${msn}.m4s\n`;
  }
  return `${text}#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_${growing}_${parts}.m4s"\n${REPORT}`;
}

const LIVE = live(4, 14, 2);

/** A concluded playlist of whole segments. */
const VOD = `#EXTM3U
#EXT-X-VERSION:4
#EXT-X-TARGETDURATION:4
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-START:TIME-OFFSET=4
#EXT-X-BYTERANGE:1000@0
#EXTINF:4.0,
all.ts
#EXT-X-BYTERANGE:1000
#EXTINF:4.0,
all.ts
#EXT-X-ENDLIST
`;

/** A live playlist of whole segments. @param type line of EXT-X-PLAYLIST-TYPE */
function plain(first: number, count: number, type = ''): string {
  const segments = Array.from({ length: count }, (_, index) => `#EXTINF:4.0,\nseg_${first + index}.ts\n`);
  return `#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:4\n${type}#EXT-X-MEDIA-SEQUENCE:${first}\n${segments.join('')}`;
}

const EVENT = '#EXT-X-PLAYLIST-TYPE:EVENT\n';
const ENDED = `${plain(0, 4)}#EXT-X-ENDLIST\n`;
const segment = (msn: number) => `#EXTINF:4.0,\nseg_${msn}.ts\n`;

const I_FRAMES = `#EXTM3U
#EXT-X-VERSION:5
#EXT-X-TARGETDURATION:4
#EXT-X-I-FRAMES-ONLY
#EXT-X-MAP:URI="init.mp4"
#EXT-X-BYTERANGE:1000@200
#EXTINF:4.0,
seg_0.m4s
#EXT-X-ENDLIST
`;

const ENCRYPTED = `#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:4
#EXT-X-KEY:METHOD=AES-128,URI="key",IV=0x00000000000000000000000000000001
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.0,
seg_0.m4s
#EXT-X-ENDLIST
`;

const VARIABLES = `#EXTM3U
#EXT-X-VERSION:8
#EXT-X-DEFINE:NAME="place",VALUE="here"
#EXT-X-TARGETDURATION:4
#EXTINF:4,
{$place}.ts
#EXT-X-ENDLIST
`;

const MASTER = `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-CONTENT-STEERING:SERVER-URI="steering",PATHWAY-ID="one"
#EXT-X-SESSION-DATA:DATA-ID="title",VALUE="A"
#EXT-X-SESSION-DATA:DATA-ID="title",LANGUAGE="de",VALUE="B"
#EXT-X-SESSION-KEY:METHOD=AES-128,URI="key"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",NAME="A",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",STABLE-RENDITION-ID="a-1",URI="audio.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",NAME="B",CHANNELS="2",URI="other.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="high",NAME="A",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="6",URI="audio-high.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="high",NAME="B",CHANNELS="6",URI="other-high.m3u8"
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="text",NAME="T",FORCED=NO,URI="text.m3u8"
#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="C",INSTREAM-ID="SERVICE1"
#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=640x360,FRAME-RATE=30.000,AUDIO="low",SUBTITLES="text",CLOSED-CAPTIONS="cc",PATHWAY-ID="one",SCORE=1.0
video.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=2000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="high",PATHWAY-ID="two",SCORE=2
video-high.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100,CODECS="avc1.64001f",URI="i-frames.m3u8"
`;

type Checked = Partial<Record<Rule, readonly Edit[]>>;

function broken(good: string, check: (text: string) => readonly Finding[], rules: Checked): void {
  for (const [rule, edits] of Object.entries(rules)) {
    covered.add(rule);
    test(`${rule}: ${RULES[rule as Rule][2]}`, (t) => {
      t.deepEqual(check(good), []);
      const [level, section] = RULES[rule as Rule];
      const findings = check(edited(good, edits));
      const found = findings.find((finding) => finding.rule === rule);
      t.like(found, { level, section }, JSON.stringify(findings));
    });
  }
}

const covered = new Set<string>();

broken(LIVE, checkMediaPlaylist, {
  'first-line': [['#EXTM3U\n', '\n#EXTM3U\n']],
  'control-character': [['seg_5', 'seg\u0001_5']],
  'tag-value': [['#EXT-X-MEDIA-SEQUENCE:4', '#EXT-X-MEDIA-SEQUENCE:four']],
  'attribute-syntax': [['CAN-SKIP-UNTIL=24,', 'CAN-SKIP-UNTIL=24, ']],
  'attribute-form': [['PLANNED-DURATION=8', 'PLANNED-DURATION=-8']],
  'attribute-twice': [['TYPE=PART,', 'TYPE=PART,TYPE=PART,']],
  'attribute-missing': [['DURATION=1,', '']],
  'tag-twice': [['#EXT-X-TARGETDURATION:4\n', '#EXT-X-TARGETDURATION:4\n#EXT-X-TARGETDURATION:4\n']],
  'mixed-playlist': [[REPORT, '#EXT-X-SESSION-DATA:DATA-ID="a",VALUE="b"\n']],
  'version-missing': [['#EXT-X-VERSION:9\n', '']],
  'version-low': [['VERSION:9', 'VERSION:5']],
  'version-high': [['VERSION:9', 'VERSION:10']],
  'target-duration-missing': [['#EXT-X-TARGETDURATION:4\n', '']],
  'segment-too-long': [['#EXTINF:4.00000', '#EXTINF:4.50000']],
  'extinf-missing': [['#EXTINF:4.00000,\n', '']],
  'uri-missing': [['#EXT-X-PRELOAD', '#EXTINF:2.0,\n#EXT-X-PRELOAD']],
  'sequence-late': [
    ['#EXT-X-MEDIA-SEQUENCE:4\n', ''],
    ['#EXT-X-PRELOAD', '#EXT-X-MEDIA-SEQUENCE:4\n#EXT-X-PRELOAD'],
  ],
  'discontinuity-sequence-late': [
    ['#EXT-X-DISCONTINUITY-SEQUENCE:2\n', ''],
    ['#EXT-X-PRELOAD', '#EXT-X-DISCONTINUITY-SEQUENCE:2\n#EXT-X-PRELOAD'],
  ],
  'map-missing': [['#EXT-X-MAP:URI="init_0.mp4"\n', '']],
  'map-without-discontinuity': [['#EXT-X-DISCONTINUITY\n', '']],
  'date-form': [[dateOf(5), dateOf(5).replace('.000Z', 'Z')]],
  'date-missing': [[`#EXT-X-PROGRAM-DATE-TIME:${dateOf(6)}\n`, '']],
  'dates-overlap': [[`TIME:${dateOf(6)}`, `TIME:${dateOf(5.75)}`]],
  'dates-drift': [[`TIME:${dateOf(8)}`, `TIME:${dateOf(8.1)}`]],
  'part-inf-missing': [['#EXT-X-PART-INF:PART-TARGET=1\n', '']],
  'part-too-long': [['DURATION=1,URI="part_14_1', 'DURATION=1.1,URI="part_14_1']],
  'part-too-short': [['DURATION=1,URI="part_13_1', 'DURATION=0.8,URI="part_13_1']],
  'part-old': [['#EXTINF:4.00000,\nseg_9', '#EXT-X-PART:DURATION=4,URI="part_9_0.m4s"\n#EXTINF:4.00000,\nseg_9']],
  'tag-behind-part': [
    [`#EXT-X-PROGRAM-DATE-TIME:${dateOf(13)}\n`, ''],
    ['#EXTINF:4.00000,\nseg_13', `#EXT-X-PROGRAM-DATE-TIME:${dateOf(13)}\n#EXTINF:4.00000,\nseg_13`],
  ],
  'part-hold-back-missing': [['PART-HOLD-BACK=3,', '']],
  'part-hold-back-low': [['PART-HOLD-BACK=3', 'PART-HOLD-BACK=1.9']],
  'part-hold-back-short': [['PART-HOLD-BACK=3', 'PART-HOLD-BACK=2.9']],
  'hold-back-low': [['HOLD-BACK=12', 'HOLD-BACK=11.9']],
  'skip-boundary-low': [['CAN-SKIP-UNTIL=24', 'CAN-SKIP-UNTIL=23']],
  'skip-date-ranges-alone': [['CAN-SKIP-UNTIL=24', 'CAN-SKIP-DATERANGES=YES']],
  'hint-after-end': [[REPORT, '#EXT-X-ENDLIST\n']],
  'hint-twice': [[REPORT, '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part_14_3.m4s"\n']],
  'report-absolute': [['URI="audio', 'URI="https://other.example/audio']],
  'range-start-missing': [[`START-DATE="${dateOf(9)}",`, '']],
  'range-differs': [[REPORT, '#EXT-X-DATERANGE:ID="ad",PLANNED-DURATION=9\n']],
  'range-end': [['PLANNED-DURATION=8', `DURATION=8,END-DATE="${dateOf(10)}"`]],
  'range-end-on-next': [['PLANNED-DURATION=8', 'END-ON-NEXT=YES']],
  'range-cue': [['PLANNED-DURATION=8', 'CUE="PRE,POST"']],
  'range-splice-length': [['PLANNED-DURATION=8', 'SCTE35-IN=0xFC31']],
});

broken(live(4, 14, 2, 4), checkMediaPlaylist, {
  'skip-not-offered': [['CAN-SKIP-UNTIL=24,', '']],
  'skipped-too-much': [['CAN-SKIP-UNTIL=24', 'CAN-SKIP-UNTIL=27']],
});

broken(VOD, checkMediaPlaylist, {
  'byte-range-alone': [['1000@0', '1000']],
  'start-outside': [['TIME-OFFSET=4', 'TIME-OFFSET=-9']],
});

broken(I_FRAMES, checkMediaPlaylist, {
  'i-frames-map-missing': [['#EXT-X-MAP:URI="init.mp4"\n', '']],
  'i-frames-parts': [['#EXT-X-BYTERANGE', '#EXT-X-PART:DURATION=4,URI="seg_0.m4s"\n#EXT-X-BYTERANGE']],
});

broken(ENCRYPTED, checkMediaPlaylist, {
  'key-attributes': [['AES-128,', 'NONE,']],
  'map-iv-missing': [[',IV=0x00000000000000000000000000000001', '']],
});

broken(VARIABLES, checkMediaPlaylist, { 'define-names': [['VALUE=', 'IMPORT=']] });

broken(LIVE.replace(/#EXT-X-PROGRAM.*\n|#EXT-X-DATERANGE.*\n/g, ''), checkMediaPlaylist, {
  'range-without-dates': [[REPORT, RANGE]],
});

broken(MASTER, checkMasterPlaylist, {
  'variant-uri-missing': [['video.m3u8\n', '']],
  'codecs-missing': [[',CODECS="avc1.64001f",URI', ',URI']],
  'group-codecs-missing': [['CODECS="avc1.64001f,mp4a.40.2",', '']],
  'group-missing': [['AUDIO="low"', 'AUDIO="lower"']],
  'captions-none': [['CLOSED-CAPTIONS="cc"', 'CLOSED-CAPTIONS=NONE']],
  'score-missing': [[',SCORE=2', '']],
  'media-uri': [[',URI="text.m3u8"', '']],
  'media-attributes': [['CHANNELS="2",URI', 'CHANNELS="2",FORCED=YES,URI']],
  'default-not-selected': [['AUTOSELECT=YES', 'AUTOSELECT=NO']],
  'group-names': [['NAME="B"', 'NAME="A"']],
  'group-defaults': [['NAME="B"', 'NAME="B",DEFAULT=YES']],
  'groups-differ': [['NAME="B"', 'NAME="C"']],
  'channels-missing': [[',CHANNELS="2"', '']],
  'stable-id': [['"a-1"', '"a 1"']],
  'i-frame-attributes': [['BANDWIDTH=100,', 'BANDWIDTH=100,FRAME-RATE=1,']],
  'session-data': [['LANGUAGE="de",', '']],
  'session-key': [['METHOD=AES-128,URI="key"', 'METHOD=NONE']],
  'pathway-unknown': [['steering",PATHWAY-ID="one"', 'steering",PATHWAY-ID="three"']],
});

/** Reloads that follow each other as the last one of each pair is changed. */
function brokenReload(good: readonly [string, string], rules: Checked): void {
  broken(good[1], (text) => checkReloads([good[0], text]).findings, rules);
}

brokenReload([LIVE, live(5, 14, 3)], {
  'media-sequence-falls': [['SEQUENCE:5', 'SEQUENCE:3']],
  'discontinuity-sequence-falls': [['DISCONTINUITY-SEQUENCE:2', 'DISCONTINUITY-SEQUENCE:1']],
  'segment-changed': [['seg_8', 'segment_8']],
  'target-duration-changed': [['TARGETDURATION:4', 'TARGETDURATION:5']],
  'header-changed': [['PART-HOLD-BACK=3', 'PART-HOLD-BACK=4']],
  'part-changed': [['part_13_2', 'part_13_2_again']],
  'part-lost': [['#EXT-X-PART:DURATION=1,URI="part_13_3.m4s"\n', '']],
  'range-changed': [['PLANNED-DURATION=8', 'PLANNED-DURATION=9']],
  'range-lost': [[RANGE, '']],
  'hint-missed': [['part_14_2', 'part_14_two']],
});

brokenReload([LIVE, live(7, 14, 3)], { 'discontinuity-number-changed': [['SEQUENCE:3', 'SEQUENCE:4']] });
brokenReload([VOD, VOD], { 'vod-changed': [['TIME-OFFSET=4', 'TIME-OFFSET=0']] });
brokenReload([plain(0, 4), plain(0, 5)], { 'segment-lost': [[segment(3) + segment(4), '']] });
brokenReload([plain(0, 4), plain(1, 4)], {
  'removed-too-early': [
    ['SEQUENCE:1', 'SEQUENCE:3'],
    [segment(1) + segment(2), ''],
  ],
});
brokenReload([plain(0, 4, EVENT), plain(0, 5, EVENT)], {
  'removed-from-typed': [
    ['SEQUENCE:0', 'SEQUENCE:1'],
    [segment(0), ''],
  ],
});
brokenReload([LIVE, `${live(4, 14, 3).replace(/#EXT-X-PRELOAD.*\n/, '')}#EXT-X-ENDLIST\n`], {
  'header-changed-at-end': [['PART-HOLD-BACK=3', 'PART-HOLD-BACK=4']],
});
brokenReload([ENDED, ENDED], {
  'added-after-end': [['#EXT-X-ENDLIST', `${segment(4)}#EXT-X-ENDLIST`]],
  'end-removed': [['#EXT-X-ENDLIST\n', '']],
});

broken(live(5, 14, 3, 3), (text) => checkDelta(LIVE, text, live(5, 14, 3)), {
  'delta-differs': [['seg_9', 'seg_nine']],
});

/** Renditions whose second one is changed. */
function brokenRendition(uri: string, good: string, rules: Checked): void {
  const renditionOf = (name: string, text: string) => ({ uri: name, playlists: checkReloads([text]).playlists });
  const video = renditionOf('video.m3u8?session=a', LIVE);
  const check = (text: string) =>
    checkRenditions(MASTER, uri === 'i-frames.m3u8' ? [renditionOf(uri, text)] : [video, renditionOf(uri, text)]);
  broken(good, check, rules);
}

brokenRendition('audio.m3u8', LIVE.replace('audio.m3u8', 'video.m3u8'), {
  'target-durations-differ': [['TARGETDURATION:4', 'TARGETDURATION:5']],
  'types-differ': [['#EXT-X-TARGET', `${EVENT}#EXT-X-TARGET`]],
  'dates-differ': [[dateOf(7), dateOf(7.6)]],
  'discontinuities-differ': [['#EXT-X-DISCONTINUITY\n', '']],
  'server-controls-differ': [['HOLD-BACK=12', 'HOLD-BACK=13']],
  'ranges-differ': [['PLANNED-DURATION=8', 'PLANNED-DURATION=9']],
  'report-missing': [['URI="video.m3u8"', 'URI="other.m3u8"']],
  'said-twice': [['#EXT-X-TARGET', '#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-TARGET']],
});
brokenRendition(
  'audio.m3u8',
  LIVE.replace('audio.m3u8', 'video.m3u8').replace(/#EXT-X-(DATERANGE|PROGRAM).*\n(?=[^]*seg_13)/g, ''),
  {
    'dates-in-some': [[`#EXT-X-PROGRAM-DATE-TIME:${dateOf(14)}\n`, '']],
  },
);
brokenRendition('i-frames.m3u8', I_FRAMES, { 'not-i-frames': [['#EXT-X-I-FRAMES-ONLY\n', '']] });

test('every rule has an example', (t) => {
  t.deepEqual(
    Object.keys(RULES).filter((rule) => !covered.has(rule)),
    [],
  );
});

test('a stream that goes on by parts, segments and delta updates breaks nothing', (t) => {
  const moments = Array.from(
    { length: 40 },
    (_, at) => [4 + Math.floor(at / 4), 14 + Math.floor(at / 4), at % 4] as const,
  );
  const answers = moments.map(([first, growing, parts], at) =>
    live(first, growing, parts, at % 3 === 0 || parts === 0 ? 0 : 3),
  );
  const { findings, playlists } = checkReloads(answers);
  t.deepEqual(findings, []);
  t.deepEqual(
    playlists.map(({ segments }) => segments.length),
    moments.map(() => 10),
  );
});

test('a delta update that skips what no one has is no playlist', (t) => {
  t.throws(() => checkReloads([live(4, 14, 2, 3)]), { message: '3 segments from 4 are not known' });
});

test('faults are what MUST not be, each once, without those that are known', (t) => {
  const text = edited(LIVE, [
    ['seg_5', 'seg\u0001_5'],
    ['PART-HOLD-BACK=3', 'PART-HOLD-BACK=2'],
    ['TARGETDURATION:4', 'TARGETDURATION:3'],
  ]);
  const { findings } = checkReloads([text, text]);
  const found = faults(findings, ['segment-too-long']);
  t.is(found.length, 1);
  t.regex(found[0] ?? '', /^control-character \(4\.1\), line 14: no byte order mark.*seg/);
});

test('products of decimal numbers are compared as such', (t) => {
  const text = edited(LIVE, [
    ['PART-HOLD-BACK=3', 'PART-HOLD-BACK=3.006'],
    ['PART-TARGET=1', 'PART-TARGET=1.002'],
  ]);
  t.true(3.006 < 3 * 1.002);
  t.deepEqual(checkMediaPlaylist(text), []);
});
