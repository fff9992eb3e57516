import test from 'ava';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { startSegmenter } from '../../support/media/segmenter.ts';

const SOURCE = videoTrack();
const ENCODED = videoTrack({ id: 1, name: 'small', bypass: false, keyFrameInterval: 30 });
const AUDIO = audioTrack({ id: 2 });

const startOf = (segment: Segment | undefined): number | undefined => {
  const data = segment?.parts[0]?.data;
  return segment && data && parseFragment(data).baseTime / segment.init.track.timebase.den;
};

test('waiting: the key frames of another video track wait for the leader, for some seconds, after each end anew', (t) => {
  const { push, segments, segmenter } = startSegmenter([SOURCE, ENCODED, AUDIO]);
  push(interleaved(videoPackets(ENCODED, { to: 3.5 }), audioPackets(AUDIO, { to: 3.5 })));
  t.is(segmenter.progress.msn, -1);
  push(
    interleaved(videoPackets(SOURCE, { from: 3.5, to: 8.5, gop: 60 }), videoPackets(ENCODED, { from: 3.5, to: 8.5 })),
  );
  t.is(startOf(segments(0)[0]), 4);
  segmenter.finish();
  const { msn } = segmenter.progress;
  push(videoPackets(ENCODED, { from: 100, to: 103.5 }));
  t.is(segmenter.progress.msn, msn);
  push(videoPackets(ENCODED, { from: 103.5, to: 106 }));
  t.is(startOf(segments(1).find((segment) => segment.msn === msn + 1)), 104);
});

test('running: frames of every track are packaged, until an end or the departure of all tracks', (t) => {
  for (const end of ['end', 'departure'] as const) {
    const { push, segmenter } = startSegmenter([SOURCE, AUDIO]);
    push(interleaved(videoPackets(SOURCE, { to: 5 }), audioPackets(AUDIO, { to: 5 })));
    t.is(segmenter.progress.msn, 2);
    if (end === 'end') segmenter.finish();
    else segmenter.setTracks([]);
    segmenter.setTracks([SOURCE, AUDIO]);
    push(videoPackets(SOURCE, { from: 5.5, to: 5.9 }));
    t.is(segmenter.progress.msn, 2, 'it waits for a key frame');
    push(videoPackets(SOURCE, { from: 5.9, to: 6.5 }));
    t.is(segmenter.progress.msn, 3);
    t.is(segmenter.progress.discontinuities, 1);
  }
});

test('running: a track that joins begins with the newest segment; another configuration of one waits for its packets', (t) => {
  const changed = videoTrack({ width: 320, config: Buffer.from(SOURCE.config as Buffer) });
  const { push, segmenter, packager } = startSegmenter([SOURCE]);
  push(videoPackets(SOURCE, { to: 5 }));
  const [joined] = segmenter.setTracks([changed, AUDIO]);
  t.is(joined, packager(AUDIO.id));
  t.is(joined?.msn, 2);
  t.is(packager(0).track, SOURCE);
});

test('waiting: another configuration is in use at once', (t) => {
  const changed = videoTrack({ width: 320 });
  const { push, segmenter, packager } = startSegmenter([SOURCE]);
  push(videoPackets(SOURCE, { to: 5 }));
  segmenter.finish();
  segmenter.setTracks([changed]);
  t.is(packager(0).track, changed);
});

test('concluded: at once while it waits or where that is urgent, else at the next cut; nothing follows', (t) => {
  for (const [how, urgent] of [
    ['waiting', false],
    ['running', true],
    ['running', false],
  ] as const) {
    const { push, segmenter, segments } = startSegmenter([SOURCE]);
    const calls: string[] = [];
    push(videoPackets(SOURCE, { to: 5 }));
    if (how === 'waiting') segmenter.finish();
    segmenter.conclude(urgent, () => calls.push('first'));
    segmenter.conclude(false, () => calls.push('second'));
    t.is(segmenter.concluded, how === 'waiting' || urgent);
    push(videoPackets(SOURCE, { from: 5, to: 9 }));
    t.true(segmenter.concluded);
    t.deepEqual(calls, ['first']);
    t.is(segmenter.progress.msn, 2);
    t.true(segments(0).every(({ complete }) => complete));
    t.is(segments(0).at(-1)?.duration, how === 'running' && !urgent ? 2 : 1);
    segmenter.finish();
    t.deepEqual(calls, ['first']);
    t.deepEqual(segmenter.setTracks([SOURCE, AUDIO]), []);
    t.false(segmenter.packagers.has(AUDIO.id));
  }
});

test('concluded: also by a cut at the replacement of missing media', (t) => {
  const { push, segmenter, segments } = startSegmenter([AUDIO, audioTrack({ id: 3 })]);
  push(interleaved(audioPackets(AUDIO, { to: 3 }), audioPackets(audioTrack({ id: 3 }), { to: 3 })));
  segmenter.conclude(false, () => {});
  push(audioPackets(audioTrack({ id: 3 }), { from: 3, to: 8 }));
  t.true(segmenter.concluded);
  t.true(segments(2).every(({ complete }) => complete));
  t.is(segments(2).length, segments(3).length);
});

test('waiting after an end: the leader that was away then is awaited again', (t) => {
  const { push, segments, segmenter } = startSegmenter([SOURCE, ENCODED]);
  push(interleaved(videoPackets(SOURCE, { to: 8.5, gop: 60 }), videoPackets(ENCODED, { to: 20 })));
  segmenter.finish();
  const { msn } = segmenter.progress;
  push(videoPackets(ENCODED, { from: 100, to: 102 }));
  t.is(segmenter.progress.msn, msn);
  push(
    interleaved(videoPackets(SOURCE, { from: 102, to: 103, gop: 60 }), videoPackets(ENCODED, { from: 102, to: 103 })),
  );
  t.is(startOf(segments(1).find((segment) => segment.msn === msn + 1)), 102);
});
