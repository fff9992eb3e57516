import test from 'ava';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import {
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../support/media/packets.ts';
import { startSegmenter as start } from '../../support/media/segmenter.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();

const media = (to: number, from = 0, video = VIDEO) =>
  interleaved(videoPackets(video, { from, to, gop: 60 }), audioPackets(AUDIO, { from, to }));
const shape = (segments: readonly Segment[]) =>
  segments.map(({ msn, discontinuity, gap }) => [msn, discontinuity, gap]);
const inStep = (one: readonly Segment[], other: readonly Segment[]) =>
  one.length === other.length &&
  one.every(({ msn, discontinuity }, at) => msn === other[at]?.msn && discontinuity === other[at]?.discontinuity);

test('finishing completes what was growing, down to the last frame, on all tracks alike', (t) => {
  const { push, segmenter, segments } = start([VIDEO, AUDIO]);
  push(media(5.2));
  segmenter.finish();
  for (const id of [0, 1]) {
    t.deepEqual(shape(segments(id)), [
      [0, false, false],
      [1, false, false],
      [2, false, false],
    ]);
    t.true(segments(id).every(({ complete }) => complete));
  }
  t.is(
    segments(0).reduce(
      (sum, { parts }) => sum + parts.reduce((frames, { data }) => frames + parseFragment(data).samples.length, 0),
      0,
    ),
    156,
  );
  t.is(segmenter.progress.msn, 2);
});

test('packets after an end go on after a discontinuity, whatever their times are', (t) => {
  for (const from of [0, 4, 5.3, 1000]) {
    const { push, segmenter, segments } = start([VIDEO, AUDIO]);
    push(media(5.2));
    segmenter.finish();
    push(media(from + 4.5, from));
    t.deepEqual(
      shape(segments(0)).slice(2),
      [
        [2, false, false],
        [3, true, false],
        [4, false, false],
        [5, false, false],
      ].slice(0, segments(0).length - 2),
      `${from}`,
    );
    t.true(inStep(segments(0), segments(1)), `${from}`);
    t.is(segments(0).filter(({ discontinuity }) => discontinuity).length, 1, `${from}`);
    t.is(segmenter.progress.discontinuities, 1);
  }
});

test('a source that has ended with one track ahead of the other: gaps keep them in step', (t) => {
  const { push, segmenter, segments } = start([VIDEO, AUDIO]);
  // no silence has taken its place yet
  push(interleaved(videoPackets(VIDEO, { to: 4.4, gop: 60 }), audioPackets(AUDIO, { to: 3.7 })));
  segmenter.finish();
  t.true(inStep(segments(0), segments(1)));
  t.true(segments(1).at(-1)?.gap);
  push(media(2.5));
  t.true(inStep(segments(0), segments(1)));
});

test('finishing what has not begun, and twice, does nothing', (t) => {
  const { push, segmenter, segments } = start([VIDEO, AUDIO]);
  segmenter.finish();
  t.deepEqual(segments(0), []);
  push(media(2.5));
  segmenter.finish();
  segmenter.finish();
  t.deepEqual(shape(segments(0)), [
    [0, false, false],
    [1, false, false],
  ]);
  t.deepEqual(shape(segments(1)), shape(segments(0)));
});

test('a new configuration of a track after the end is a new initialization, and no gap', (t) => {
  const { push, segmenter, segments } = start([VIDEO, AUDIO]);
  push(media(2.5));
  segmenter.finish();
  const changed = videoTrack({ config: AVC_HIGH });
  segmenter.setTracks([changed, AUDIO]);
  push(media(2.5, 0, changed));
  t.deepEqual(shape(segments(0)), [
    [0, false, false],
    [1, false, false],
    [2, true, false],
    [3, false, false],
  ]);
  t.deepEqual(
    segments(0).map(({ init }) => init.version),
    [0, 0, 1, 1],
  );
  t.deepEqual(
    segments(1).map(({ init }) => init.version),
    [0, 0, 0, 0],
  );
});

test('a stream that continues another begins where that one says, and never at what it had', (t) => {
  const first = start([VIDEO, AUDIO]);
  first.push(media(5.2));
  const { msn, discontinuities, inits } = first.segmenter.progress;
  t.deepEqual(
    [...inits],
    [
      [0, 1],
      [1, 1],
    ],
  );
  const next = start([VIDEO, AUDIO], { firstMsn: msn + 1, past: { discontinuities, inits, gaps: 0 } });
  t.is(next.segmenter.progress.msn, msn, 'also when nothing has come yet');
  t.is(next.segmenter.progress.discontinuities, discontinuities);
  next.push(media(2.5));
  t.is(next.segments(0)[0]?.msn, 3);
  t.is(next.packager(0).window.discontinuitySequence, 1);
  t.is(next.segments(0)[0]?.init.version, 1);
  t.deepEqual(
    [...next.segmenter.progress.inits],
    [
      [0, 2],
      [1, 2],
    ],
  );
});

test('segments that may have been announced are gaps, before the discontinuity', (t) => {
  const past = {
    discontinuities: 4,
    inits: new Map([
      [0, 2],
      [1, 2],
    ]),
    gaps: 3,
  };
  const { push, segments, packager } = start([VIDEO, AUDIO], { firstMsn: 10, past });
  push(media(4.5));
  const wanted = [
    [7, false, true],
    [8, false, true],
    [9, false, true],
    [10, true, false],
    [11, false, false],
    [12, false, false],
  ];
  for (const id of [0, 1]) {
    t.deepEqual(shape(segments(id)), wanted);
    t.is(packager(id).window.discontinuitySequence, 4);
    t.deepEqual(
      segments(id)
        .slice(0, 3)
        .map(({ duration }) => duration),
      [2, 2, 2],
    );
  }
  const clocks = segments(0).map(({ wallClock }) => wallClock);
  t.deepEqual(
    clocks,
    clocks.toSorted((one, other) => one - other),
  );
});

test('more gaps than a playlist has segments are listed until the playlist is full without them', (t) => {
  const { push, segmenter } = start([VIDEO, AUDIO], {
    segmentCount: 3,
    firstMsn: 30,
    past: { discontinuities: 0, inits: new Map(), gaps: 12 },
  });
  for (let to = 0.5; to < 30; to += 0.5) {
    push(media(to, to - 0.5));
    for (const { window } of segmenter.packagers.values()) {
      const real = window.listed.filter(({ gap }) => !gap).length;
      const numbers = window.listed.map(({ msn }) => msn);
      t.deepEqual(
        numbers,
        numbers.map((_, index) => (numbers[0] as number) + index),
      );
      if (real < 3) t.is(numbers[0] ?? 18, 18);
      t.is(numbers.length, numbers[0] === 18 ? 12 + real : real);
      const behind = window.listed.slice(1).reduce((sum, { duration }) => sum + duration, 0);
      t.true(real <= 3 || behind < 3 * segmenter.targetDuration);
    }
  }
});
