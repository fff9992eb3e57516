import test from 'ava';
import type { MediaTrack } from '../../../src/core/track.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import { AVC_HIGH, interleaved, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { arriving, startSegmenter } from '../../support/media/segmenter.ts';

const SOURCE = videoTrack();
const ENCODED = videoTrack({ id: 1, name: 'small', bypass: false, keyFrameInterval: 30 });

const numbers = (segments: readonly Segment[]) => segments.map(({ msn, discontinuity }) => [msn, discontinuity]);
const withMedia = (segments: readonly Segment[]) => segments.filter(({ parts }) => parts.length > 0);
const startOf = ({ parts: [first], init: { track } }: Segment): number =>
  parseFragment(first?.data as Buffer).baseTime / track.timebase.den;

test('an absent rendition that returns with another configuration has it from its first segment on', (t) => {
  const changed: MediaTrack = { ...ENCODED, config: AVC_HIGH };
  for (const from of [15, 15.5]) {
    const { push, segments, segmenter } = startSegmenter([SOURCE, ENCODED]);
    push(
      interleaved(videoPackets(SOURCE, { to: 24.5 }), [
        ...videoPackets(ENCODED, { to: 4 }),
        ...videoPackets(ENCODED, { from, to: 24.5 }).map((packet) => ({ ...packet, track: changed })),
      ]),
    );
    segmenter.finish();
    const returned = withMedia(segments(1)).filter((segment) => startOf(segment) > 10);
    t.is(startOf(returned[0] as Segment), Math.ceil(from));
    t.true(returned.every(({ init: { track }, parts: [first] }) => track === changed && first?.independent));
    t.deepEqual(numbers(segments(1)), numbers(segments(0)));
  }
});

test('an absent rendition whose clock jumps makes one discontinuity, and begins every segment at a key frame', (t) => {
  for (const from of [100, 100.5]) {
    const { push, segments, segmenter } = startSegmenter([SOURCE, ENCODED]);
    push(interleaved(videoPackets(SOURCE, { to: 12 }), videoPackets(ENCODED, { to: 4 })));
    push(videoPackets(ENCODED, { from, to: from + 0.2 }));
    push(
      arriving(
        [videoPackets(SOURCE, { from: from + 0.2, to: 110.5 }), 0],
        [videoPackets(ENCODED, { from: from + 0.2, to: 110.5 }), 0.3],
      ),
    );
    segmenter.finish();
    t.deepEqual(numbers(segments(1)), numbers(segments(0)));
    t.is(segments(0).filter(({ discontinuity }) => discontinuity).length, 1);
    for (const id of [0, 1]) t.true(withMedia(segments(id)).every(({ parts: [first] }) => first?.independent));
  }
});
