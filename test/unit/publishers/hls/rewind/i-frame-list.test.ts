import test from 'ava';
import { PastList } from '../../../../../src/publishers/hls/rewind/past-list.ts';
import { iFrameList } from '../../../../../src/publishers/hls/rewind/i-frame-list.ts';
import type { PastSegment } from '../../../../../src/publishers/hls/rewind/journal.ts';

function segment(msn: number, more: Partial<PastSegment> = {}): PastSegment {
  return {
    name: `seg_5_${msn}_v.m4s`,
    msn,
    duration: 2,
    wallClock: msn * 2000,
    discontinuity: false,
    discontinuitySequence: 0,
    gap: false,
    breaks: '#EXT-X-CUE-IN\n',
    init: { name: 'init_5.m4s' },
    keyFrame: 1000 + msn,
    ...more,
  };
}

const date = (msn: number): string => `#EXT-X-PROGRAM-DATE-TIME:${new Date(msn * 2000).toISOString()}\n`;
const OPTIONS = { longest: 2.4, event: false, ended: false };

function text(past: PastList, options = OPTIONS): string {
  return iFrameList(past, options)
    .map(({ plain }) => plain.toString())
    .join('');
}

test('each segment with its first frame, and without one as a gap', (t) => {
  const past = new PastList('?k=1');
  past.add(segment(3));
  past.add(segment(4, { keyFrame: undefined }));
  past.add(segment(5, { discontinuity: true }));
  past.add(segment(6, { discontinuitySequence: 1, init: { name: 'init_5_v1.m4s' } }));
  past.markGap(6);
  t.is(
    text(past),
    '#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:3\n#EXT-X-I-FRAMES-ONLY\n' +
      '#EXT-X-MAP:URI="init_5.m4s?k=1"\n' +
      `${date(3)}#EXT-X-BYTERANGE:1003@0\n#EXTINF:2.000000,\nseg_5_3_v.m4s?k=1\n` +
      `${date(4)}#EXT-X-GAP\n#EXTINF:2.000000,\nseg_5_4_v.m4s?k=1\n` +
      `#EXT-X-DISCONTINUITY\n${date(5)}#EXT-X-BYTERANGE:1005@0\n#EXTINF:2.000000,\nseg_5_5_v.m4s?k=1\n` +
      `#EXT-X-MAP:URI="init_5_v1.m4s?k=1"\n${date(6)}#EXT-X-GAP\n#EXTINF:2.000000,\nseg_5_6_v.m4s?k=1\n`,
  );
});

test('its head follows the media playlists', (t) => {
  const past = new PastList('');
  for (let msn = 0; msn < 600; msn++)
    past.add(segment(msn, { discontinuity: msn === 10, discontinuitySequence: msn > 10 ? 1 : 0 }));
  past.dropBefore(20);
  const list = text(past, { longest: 6, event: true, ended: true });
  t.true(
    list.startsWith(
      '#EXTM3U\n#EXT-X-VERSION:8\n#EXT-X-TARGETDURATION:6\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-MEDIA-SEQUENCE:20\n' +
        '#EXT-X-DISCONTINUITY-SEQUENCE:1\n#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:',
    ),
  );
  t.true(list.endsWith('seg_5_599_v.m4s\n#EXT-X-ENDLIST\n'));
  t.deepEqual(
    [...list.matchAll(/BYTERANGE:(\d+)@0/g)].map(([, bytes]) => Number(bytes)),
    Array.from({ length: 580 }, (_, index) => 1020 + index),
  );
});

test('lines of full blocks are compressed once', async (t) => {
  const past = new PastList('');
  for (let msn = 0; msn < 300; msn++) past.add(segment(msn));
  const before = await Promise.all(iFrameList(past, OPTIONS).map((piece) => piece.deflated()));
  past.add(segment(300));
  const after = await Promise.all(iFrameList(past, OPTIONS).map((piece) => piece.deflated()));
  // behind the head and the initialization
  t.is(after[2], before[2]);
  t.not(after[3], before[3]);
});
