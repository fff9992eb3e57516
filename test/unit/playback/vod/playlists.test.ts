import test from 'ava';
import HLS from 'hls-parser';
import { masterPlaylist, mediaPlaylist, subtitlePlaylist } from '../../../../src/playback/vod/playlists.ts';
import { checkMasterPlaylist } from '../../../support/playlist-rules/master-rules.ts';
import { checkMediaPlaylist } from '../../../support/playlist-rules/media-rules.ts';

HLS.setOptions({ strictMode: true });

const NOON = Date.UTC(2026, 2, 5, 12);

test('a media playlist has the segments of all recordings, with their dates', (t) => {
  const text = mediaPlaylist(
    [
      {
        init: 'a.mp4',
        startTime: NOON,
        segments: [
          { uri: 'a_0.m4s', duration: 4 },
          { uri: 'a_1.m4s', duration: 3.52 },
        ],
      },
      { init: 'b.mp4', startTime: NOON + 60_000, segments: [{ uri: 'b_0.m4s', duration: 1.5 }] },
    ],
    2.25,
  );
  t.is(
    text,
    `#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:4
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-START:TIME-OFFSET=2.250,PRECISE=YES
#EXT-X-MAP:URI="a.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-03-05T12:00:00.000Z
#EXTINF:4.000000,
a_0.m4s
#EXTINF:3.520000,
a_1.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="b.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-03-05T12:01:00.000Z
#EXTINF:1.500000,
b_0.m4s
#EXT-X-ENDLIST
`,
  );
  t.deepEqual(checkMediaPlaylist(text), []);
  const { segments, ...list } = HLS.parse(text) as HLS.types.MediaPlaylist;
  t.like(list, { playlistType: 'VOD', endlist: true, start: { offset: 2.25, precise: true } });
  t.deepEqual(
    segments.map(({ uri, map, discontinuity }) => [uri, map?.uri, discontinuity ?? false]),
    [
      ['a_0.m4s', 'a.mp4', false],
      ['a_1.m4s', 'a.mp4', false],
      ['b_0.m4s', 'b.mp4', true],
    ],
  );
});

const VARIANT = {
  codecs: new Set(['avc1.64001f', 'opus']),
  peak: 2_000_000.5,
  average: 1_500_000,
};

test('a master playlist has one variant', (t) => {
  const text = masterPlaylist('x/', { ...VARIANT, width: 1280, height: 720 }, [], 1);
  t.is(
    text,
    `#EXTM3U
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-START:TIME-OFFSET=1.000,PRECISE=YES
#EXT-X-STREAM-INF:BANDWIDTH=2000001,AVERAGE-BANDWIDTH=1500000,RESOLUTION=1280x720,CODECS="avc1.64001f,opus"
x/media.m3u8
`,
  );
  const audio = masterPlaylist('x/', { ...VARIANT, codecs: new Set(['mp4a.40.2']), width: 0, height: 0 }, [], 0);
  t.regex(audio, /SEGMENTS\n#EXT-X-STREAM-INF:BANDWIDTH=2000001,AVERAGE-BANDWIDTH=1500000,CODECS="mp4a.40.2"\n/);
  for (const one of [text, audio]) {
    t.deepEqual(checkMasterPlaylist(one), []);
    t.is((HLS.parse(one) as HLS.types.MasterPlaylist).variants.length, 1);
  }
});

test('subtitles are a group of the variant, with a segment for each of the media', (t) => {
  const labels = [
    { label: 'English', language: 'en', isDefault: true, forced: false },
    { label: '"한국어"', isDefault: false, forced: true },
  ];
  const text = masterPlaylist('x/', { ...VARIANT, width: 0, height: 0 }, labels, 0);
  t.deepEqual(checkMasterPlaylist(text), []);
  t.deepEqual(text.split('\n').slice(2, 5), [
    '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="English",DEFAULT=YES,AUTOSELECT=YES,FORCED=NO,LANGUAGE="en",URI="x/subtitles_0.m3u8"',
    '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="한국어",DEFAULT=NO,AUTOSELECT=NO,FORCED=YES,URI="x/subtitles_1.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=2000001,AVERAGE-BANDWIDTH=1500000,CODECS="avc1.64001f,opus",SUBTITLES="subtitles"',
  ]);
  const files = ['a', 'b'].map((id, index) => ({
    init: `${id}.mp4`,
    startTime: NOON + index * 60_000,
    segments: [{ uri: `${id}_0.m4s`, duration: 4 }],
  }));
  const list = subtitlePlaylist(files, 1, 1);
  t.deepEqual(checkMediaPlaylist(list), []);
  t.is(
    list,
    mediaPlaylist(files, 1)
      .replace('VERSION:6', 'VERSION:3')
      .replaceAll(/#EXT-X-MAP.*\n/g, '')
      .replaceAll('.m4s', '_1.vtt'),
  );
});
