import test from 'ava';
import { matching } from '../../../../src/providers/hls-pull/matching.ts';
import type { MediaPlaylist, Segment } from '../../../../src/providers/hls-pull/playlist.ts';

interface Shape {
  readonly isEnded?: boolean;
  /** Date of the first segment, in seconds. */
  readonly date?: number;
  /** Sequence numbers before which there is a discontinuity. */
  readonly discontinuities?: readonly number[];
}

/** Segments from a sequence number on. */
function playlist(first: number, count: number, duration: number, shape: Shape = {}): MediaPlaylist {
  const { isEnded = false, date, discontinuities = [] } = shape;
  const segments = Array.from({ length: count }, (_, n) => ({
    sequence: first + n,
    duration,
    discontinuity: discontinuities.filter((number) => number <= first + n).length,
    date: date === undefined ? undefined : (date + n * duration) * 1000,
  })) as Segment[];
  return { kind: 'media', target: duration, segments, isEnded };
}

test('playlists with dates begin at the same time', (t) => {
  const video = playlist(100, 10, 6, { date: 1000 });
  t.is(matching(playlist(7, 30, 2, { date: 1000 }), video, 104), 7 + 12);
  t.is(matching(playlist(7, 30, 2, { date: 1001 }), video, 104), 7 + 11);
  // where all segments are later than the video's, and where all are earlier
  t.is(matching(playlist(7, 3, 2, { date: 2000 }), video, 104), 7);
  t.is(matching(playlist(7, 3, 2, { date: 10 }), video, 104), 9);
});

test('live playlists begin as far before their ends, and a little earlier', (t) => {
  const video = playlist(100, 10, 6);
  t.is(matching(playlist(0, 60, 2), video, 107), 60 - 10);
  t.is(matching(playlist(50, 10, 6), video, 107), 56);
  t.is(matching(playlist(50, 2, 6), video, 107), 50);
  t.is(matching(playlist(50, 0, 6), video, 107), 0);
});

test('playlists that have ended begin as far behind their beginnings', (t) => {
  const video = playlist(0, 10, 6, { isEnded: true });
  const audio = playlist(20, 30, 2, { isEnded: true });
  t.is(matching(audio, video, 0), 20);
  t.is(matching(audio, video, 3), 29);
  t.is(matching(playlist(20, 4, 2, { isEnded: true }), video, 5), 23);
});

test('a playlist begins in the same discontinuity', (t) => {
  const video = playlist(100, 10, 6, { discontinuities: [106] });
  t.is(matching(playlist(0, 10, 6, { discontinuities: [8] }), video, 106), 8);
  t.is(matching(playlist(0, 10, 6, { discontinuities: [2] }), video, 105), 1);
  // one that it has not got to yet is waited for
  t.is(matching(playlist(0, 10, 6), video, 107), 6);
});
