import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack, VideoTrack } from '../../../src/core/track.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import { audioPackets, audioTrack, AVC_HIGH, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { arriving, startSegmenter } from '../../support/media/segmenter.ts';

const SOURCE = videoTrack();
const encoded = (id: number, shape: Partial<VideoTrack> = {}) =>
  videoTrack({ id, name: `v${id}`, bypass: false, keyFrameInterval: 30, ...shape });
const SOUND = audioTrack({ id: 9 });

const starts = (segments: readonly Segment[]) =>
  segments.filter(({ parts }) => parts.length > 0).map((segment) => startOf(segment));
const msns = (segments: readonly Segment[]) => segments.map(({ msn }) => msn);
const gaps = (segments: readonly Segment[]) => msns(segments.filter(({ gap }) => gap));

/** Decode time of a segment's first frame, in seconds. */
function startOf({ parts: [first], init: { track } }: Segment): number {
  return parseFragment(first?.data as Buffer).baseTime / track.timebase.den;
}

/** The discontinuity sequence number of each segment that is listed, by media sequence number. */
function discontinuities({
  window,
}: {
  window: { discontinuitySequence: number; listed: readonly Segment[]; open: Segment | undefined };
}) {
  let sequence = window.discontinuitySequence;
  const all = [...window.listed, ...(window.open === undefined ? [] : [window.open])];
  return new Map(all.map(({ msn, discontinuity }) => [msn, discontinuity ? ++sequence : sequence]));
}

function assertKeys(t: ExecutionContext, segments: readonly Segment[]): void {
  t.true(segments.every(({ parts: [first] }) => first === undefined || first.independent));
}

test('the picture with the rarest key frames leads, so that none has a segment without one', (t) => {
  const small = encoded(1);
  for (const tracks of [
    [SOURCE, small],
    [small, SOURCE],
  ]) {
    const { push, segments, segmenter } = startSegmenter(tracks);
    push(arriving([videoPackets(SOURCE, { to: 21, gop: 120 }), 0], [videoPackets(small, { to: 21 }), 0.2]));
    t.deepEqual(starts(segments(0)), [0, 4, 8, 12, 16, 20]);
    t.deepEqual(starts(segments(1)), [0, 4, 8, 12, 16, 20]);
    t.deepEqual(msns(segments(1)), msns(segments(0)));
    t.is(segmenter.targetDuration, 4);
    assertKeys(t, [...segments(0), ...segments(1)]);
  }
});

test('a source whose key frames turn out to be frequent makes way for an encoder whose are rare', (t) => {
  const slow = encoded(1, { keyFrameInterval: 90 });
  const { push, segments } = startSegmenter([SOURCE, slow]);
  push(arriving([videoPackets(SOURCE, { to: 22, gop: 15 }), 0], [videoPackets(slow, { to: 22, gop: 90 }), 0.2]));
  t.deepEqual(
    starts(segments(1)).slice(-5),
    [6, 9, 12, 15, 18].map((time) => time + 3),
  );
  const late = segments(0).filter((segment) => segment.msn >= 3);
  for (const segment of late) {
    const same = segments(1).find(({ msn }) => msn === segment.msn);
    const apart = same === undefined || same.parts.length === 0 ? 0 : startOf(segment) - startOf(same);
    t.true(apart >= 0 && apart <= 0.5, 'at the next key frame after the one that comes later');
  }
  assertKeys(t, [...segments(0), ...segments(1)]);
});

test('the first of several video tracks with equally rare key frames begins each segment, from the first on', (t) => {
  for (const [early, late] of [
    [SOURCE, videoTrack({ id: 1 })],
    [encoded(0), encoded(1)],
  ] as const) {
    for (const tracks of [
      [early, late, SOUND],
      [late, early, SOUND],
    ]) {
      const { push, segments } = startSegmenter(tracks, { segmentDuration: 1, firstSegmentDuration: 1 });
      push(
        arriving(
          [videoPackets(early, { to: 6.6 }), 0],
          [videoPackets(late, { to: 6.6 }), 0.25],
          [audioPackets(SOUND, { to: 6.6 }), 0.1],
        ),
      );
      t.deepEqual(starts(segments(0)), [0, 1, 2, 3, 4, 5, 6]);
      t.deepEqual(starts(segments(1)), [0, 1, 2, 3, 4, 5, 6]);
      t.true(starts(segments(9)).every((start, index) => start - index < 0.022));
    }
  }
});

test('frame rates whose key frames are half a frame apart are cut together, whichever comes first', (t) => {
  const fast = encoded(1, { framerate: 30 });
  const slow = encoded(2, { framerate: 15, keyFrameInterval: 15 });
  const moved = videoPackets(slow, { to: 12.5, framerate: 15, gop: 15 }).map((packet) => ({
    ...packet,
    dts: packet.dts + 2999,
    pts: packet.pts + 2999,
  }));
  for (const [fastLate, slowLate] of [
    [0, 0.3],
    [0.3, 0],
  ] as const) {
    for (const tracks of [
      [fast, slow],
      [slow, fast],
    ]) {
      const { push, segments } = startSegmenter(tracks);
      push(arriving([videoPackets(fast, { to: 12.5 }), fastLate], [moved, slowLate]));
      t.deepEqual(msns(segments(1)), [0, 1, 2, 3, 4, 5, 6]);
      t.deepEqual(msns(segments(2)), [0, 1, 2, 3, 4, 5, 6]);
      const apart = starts(segments(1)).map((start, index) => Math.abs(start - (starts(segments(2))[index] as number)));
      t.true(Math.max(...apart) < 0.04, apart.join());
      assertKeys(t, [...segments(1), ...segments(2)]);
    }
  }
});

test('renditions that come late have the same numbers and the same times of day', (t) => {
  const small = encoded(1);
  const { push, segments } = startSegmenter([SOURCE, small, SOUND]);
  push(
    arriving(
      [videoPackets(SOURCE, { to: 12.1 }), 0],
      [videoPackets(small, { to: 12.1 }), 0.3],
      [audioPackets(SOUND, { to: 12.1 }), 0.1],
    ),
  );
  for (const id of [1, 9]) {
    t.deepEqual(msns(segments(id)), msns(segments(0)));
    for (const [index, { wallClock }] of segments(id).entries()) {
      t.true(Math.abs(wallClock - (segments(0)[index]?.wallClock ?? 0)) < 22);
    }
  }
});

test('the parts of each picture fit its own frame rate', (t) => {
  const slow = encoded(1, { framerate: 10, keyFrameInterval: 10 });
  const { push, segments, packager } = startSegmenter([SOURCE, slow], { chunkDuration: 0.25 });
  push(arriving([videoPackets(SOURCE, { to: 8 }), 0], [videoPackets(slow, { to: 8, framerate: 10, gop: 10 }), 0.1]));
  for (const id of [0, 1]) {
    const { partTarget } = packager(id);
    for (const { parts } of segments(id)) {
      for (const { duration } of parts.slice(0, -1))
        t.true(duration <= partTarget + 1e-9 && duration >= 0.85 * partTarget, `${id}: ${duration} of ${partTarget}`);
    }
  }
});

for (const [from, to, chunkDuration] of [
  [25, 15, 0.2],
  [25, 15, 0.333],
  [30, 20, 0.2],
  [30, 12, 0.333],
  [60, 24, 0.2],
] as const) {
  test(`parts of ${chunkDuration} s of ${to} frames a second that are left of ${from} fit, though those are not equally far apart`, (t) => {
    const slow = encoded(1, { framerate: to, keyFrameInterval: to });
    const due = (time: number) => Math.floor(time * to + 1e-6);
    const left = videoPackets(slow, { to: 12, framerate: from, gop: from }).filter((packet) => {
      const time = packet.dts / 90_000;
      return packet.key || due(time + 0.5 / from) > due(time - 0.5 / from);
    });
    const { push, segments, packager } = startSegmenter([slow], { chunkDuration });
    push(left);
    const { partTarget } = packager(1);
    t.true(partTarget < chunkDuration * 1.15);
    const parts = segments(1).flatMap((segment) => segment.parts.slice(0, -1));
    t.true(parts.length > 20);
    for (const { duration } of parts)
      t.true(duration <= partTarget + 1e-9 && duration >= 0.85 * partTarget, `${duration} of ${partTarget}`);
  });
}

test('an encoder that starts again leaves a hole in its own playlist and nothing in the others', (t) => {
  const small = encoded(1);
  const { push, segments } = startSegmenter([SOURCE, small, SOUND]);
  push(
    arriving(
      [videoPackets(SOURCE, { to: 14.6 }), 0],
      [[...videoPackets(small, { to: 3.4 }), ...videoPackets(small, { from: 6, to: 14.6 })], 0.2],
      [audioPackets(SOUND, { to: 14.6 }), 0],
    ),
  );
  t.deepEqual(starts(segments(0)), [0, 2, 4, 6, 8, 10, 12, 14]);
  t.deepEqual(starts(segments(1)), [0, 2, 6, 8, 10, 12, 14]);
  t.deepEqual(gaps(segments(1)), [2]);
  for (const id of [0, 1, 9]) t.true(segments(id).every(({ discontinuity }) => !discontinuity));
  for (const segment of segments(1)) if (segment.parts.length > 0) t.is(startOf(segment), segment.msn * 2);
});

test('a rendition that is away for a minute and comes back finds its place, and no other notices', (t) => {
  const small = encoded(1);
  const { push, segments, packager } = startSegmenter([SOURCE, small, SOUND]);
  const away = videoPackets(SOURCE, { from: 3, to: 60.1 });
  push(
    arriving(
      [videoPackets(SOURCE, { to: 3 }), 0],
      [videoPackets(small, { to: 3 }), 0.2],
      [audioPackets(SOUND, { to: 3 }), 0],
    ),
  );
  push(arriving([away, 0], [audioPackets(SOUND, { from: 3, to: 60.1 }), 0]));
  t.true(packager(1).msn === packager(0).msn, 'its playlist goes on');
  push(
    arriving(
      [videoPackets(SOURCE, { from: 60.1, to: 70.6 }), 0],
      [videoPackets(small, { from: 63, to: 70.6 }), 0.3],
      [audioPackets(SOUND, { from: 60.1, to: 70.6 }), 0],
    ),
  );
  t.deepEqual(
    starts(segments(0)),
    Array.from({ length: 36 }, (_, index) => index * 2),
  );
  t.deepEqual(starts(segments(1)), [0, 2, 63, 64, 66, 68, 70]);
  t.deepEqual(msns(segments(1).filter(({ parts }) => parts.length > 0)), [0, 1, 31, 32, 33, 34, 35]);
  t.deepEqual(msns(segments(9)), msns(segments(0)));
  for (const id of [0, 1, 9]) t.true(segments(id).every(({ discontinuity }) => !discontinuity));
  t.true(
    Math.abs((segments(1).find(({ msn }) => msn === 31)?.wallClock ?? 0) - (segments(0)[31]?.wallClock ?? 0) - 1000) <
      1,
  );
});

test('another video track leads while the leader is away', (t) => {
  const small = encoded(1);
  const { push, segments } = startSegmenter([SOURCE, small]);
  push(
    arriving(
      [[...videoPackets(SOURCE, { to: 8, gop: 120 }), ...videoPackets(SOURCE, { from: 40, to: 52.6, gop: 120 })], 0],
      [videoPackets(small, { to: 52.6 }), 0.2],
    ),
  );
  t.true(segments(1).every(({ duration }) => duration <= 9));
  const during = segments(1).filter(
    (segment) => segment.parts.length > 0 && startOf(segment) >= 16 && startOf(segment) < 40,
  );
  t.true(during.slice(0, -1).every(({ duration }) => duration < 2.01));
  const back = segments(0).filter((segment) => segment.parts.length > 0 && startOf(segment) >= 40);
  t.deepEqual(starts(back), [40, 44, 48, 52]);
  for (const segment of back.slice(1)) {
    const same = segments(1).find(({ msn }) => msn === segment.msn);
    if (same !== undefined && same.parts.length > 0) t.is(startOf(same), startOf(segment));
  }
  assertKeys(t, [...segments(0), ...segments(1)]);
});

test('a source that never comes does not keep the encoded renditions from starting', (t) => {
  const small = encoded(1);
  const { push, segments } = startSegmenter([SOURCE, small]);
  push(videoPackets(small, { to: 12.1 }));
  t.true(segments(1).length >= 4);
  assertKeys(t, segments(1));
});

test('a rendition that joins has the number of the segment and of the discontinuity that the others are in', (t) => {
  const changed = videoTrack({ config: AVC_HIGH });
  const small = encoded(1);
  const { push, segmenter, segments, packager } = startSegmenter([SOURCE]);
  push(videoPackets(SOURCE, { to: 5 }));
  push(videoPackets(changed, { from: 5, to: 8.5 }));
  segmenter.setTracks([changed, small]);
  push(
    arriving([videoPackets(changed, { from: 8.5, to: 12.1 }), 0], [videoPackets(small, { from: 9, to: 12.1 }), 0.3]),
  );
  t.deepEqual(msns(segments(1)), [5, 6]);
  t.deepEqual(starts(segments(1)), [9, 11]);
  t.is(segments(0).find(({ msn }) => msn === 5)?.wallClock, segments(1)[0]?.wallClock);
  const [theirs, own] = [discontinuities(packager(0)), discontinuities(packager(1))];
  t.deepEqual(
    [...own],
    [
      [5, 1],
      [6, 1],
    ],
  );
  for (const [msn, sequence] of own) t.is(theirs.get(msn), sequence);
});

test('a rendition that was taken out and comes back goes on with the right numbers under another initialization', (t) => {
  const small = encoded(1);
  const { push, segmenter, segments, packager } = startSegmenter([SOURCE, small]);
  push(arriving([videoPackets(SOURCE, { to: 5 }), 0], [videoPackets(small, { to: 5 }), 0.2]));
  segmenter.setTracks([SOURCE]);
  push(videoPackets(SOURCE, { from: 5, to: 20 }));
  segmenter.setTracks([SOURCE, encoded(1)]);
  push(arriving([videoPackets(SOURCE, { from: 20, to: 26.1 }), 0], [videoPackets(small, { from: 20, to: 26.1 }), 0.2]));
  t.deepEqual(starts(segments(1)), [20, 22, 24]);
  t.deepEqual(msns(segments(1)).slice(0, 3), [10, 11, 12]);
  t.deepEqual(packager(1).init.version, 1);
  t.true(segments(0).every(({ discontinuity }) => !discontinuity));
});

test('a new configuration in one rendition is a discontinuity in all, at a key frame of each', (t) => {
  const small = encoded(1);
  const changed = encoded(1, { config: AVC_HIGH });
  const { push, segments, packager } = startSegmenter([SOURCE, small, SOUND]);
  push(
    arriving(
      [videoPackets(SOURCE, { to: 9.1 }), 0],
      [[...videoPackets(small, { to: 5 }), ...videoPackets(changed, { from: 5, to: 9.1 })], 0.25],
      [audioPackets(SOUND, { to: 9.1 }), 0],
    ),
  );
  for (const id of [0, 1, 9]) {
    t.deepEqual(
      segments(id)
        .filter(({ discontinuity }) => discontinuity)
        .map(({ msn }) => msn),
      [3],
      `${id}`,
    );
    t.deepEqual(discontinuities(packager(id)), discontinuities(packager(0)));
  }
  assertKeys(t, [...segments(0), ...segments(1)]);
});

for (const jump of [-2, -3600, 3600]) {
  test(`the source's clock jumps by ${jump} s: one discontinuity in every rendition, however late they are`, (t) => {
    const small = encoded(1);
    const { push, segments, packager } = startSegmenter([SOURCE, small, SOUND]);
    const moved = (packets: readonly Packet[]) =>
      packets.map((packet) => {
        const ticks = jump * (packet.track as MediaTrack).timebase.den;
        return { ...packet, dts: packet.dts + ticks, pts: packet.pts + ticks };
      });
    const base = 4000;
    const order = arriving(
      [videoPackets(SOURCE, { from: base, to: base + 12.1 }), 0],
      [videoPackets(small, { from: base, to: base + 12.1 }), 0.3],
      [audioPackets(SOUND, { from: base, to: base + 12.1 }), 0.1],
    );
    const before = ({ dts, track }: Packet) => dts / (track as MediaTrack).timebase.den < base + 5;
    push(order.map((packet) => (before(packet) ? packet : (moved([packet])[0] as Packet))));
    for (const id of [0, 1, 9]) {
      t.is(segments(id).filter(({ discontinuity }) => discontinuity).length, 1, `track ${id}`);
      t.deepEqual([...discontinuities(packager(id)).keys()].slice(0, 6), [0, 1, 2, 3, 4, 5]);
      const after = segments(id).find(({ discontinuity }) => discontinuity) as Segment;
      t.true(Math.abs(startOf(after) - (base + 5 + jump)) < 0.05, `${id}: ${startOf(after)}`);
    }
    assertKeys(t, [...segments(0), ...segments(1)]);
  });
}

/** xorshift: the same numbers in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const MAX_LATE = 0.8;

test('segment numbers mean the same time and discontinuity in all renditions, whatever is late, away or has other key frames', (t) => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seeded(seed * 2_654_435_761);
    const pick = <T>(...values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
    const tracks = [SOURCE, encoded(1, { framerate: 30 }), encoded(2, { framerate: 15, keyFrameInterval: 15 })];
    const sourceGop = pick(15, 30, 60, 90);
    const sources = tracks.map((track, index) => {
      const { framerate } = track;
      const gop = index === 0 ? sourceGop : framerate;
      const away = random() * 30;
      const backAfter = pick(0, 0, 1, 3, 15);
      const packets = videoPackets(track, { to: 50, framerate, gop });
      const present = packets.filter(({ dts }) => dts / 90_000 < away || dts / 90_000 >= Math.ceil(away + backAfter));
      const whole = present.filter(
        (packet, at) => at === 0 || packet.key || packet.dts - (present[at - 1]?.dts ?? 0) <= 90_000 / framerate + 1,
      );
      return [index === 0 ? packets : whole, index === 0 ? 0 : random() * MAX_LATE] as const;
    });
    const { push, segments, packager } = startSegmenter(tracks, {
      segmentDuration: pick(1, 2, 4),
      firstSegmentDuration: 1,
    });
    push(arriving(...sources));
    const theirs = discontinuities(packager(0));
    for (const { id } of tracks) {
      const own = segments(id);
      t.deepEqual(
        msns(own),
        own.map((_, index) => (own[0]?.msn ?? 0) + index),
        `seed ${seed}: every number`,
      );
      t.true(
        own.every(({ discontinuity }) => !discontinuity),
        `seed ${seed}`,
      );
      for (const [msn, sequence] of discontinuities(packager(id))) if (theirs.has(msn)) t.is(theirs.get(msn), sequence);
      for (const segment of own) {
        const leading = segments(0).find(({ msn }) => msn === segment.msn);
        if (leading === undefined || segment.parts.length === 0 || leading.parts.length === 0) continue;
        const behind = startOf(segment) - startOf(leading);
        t.true(
          behind > -0.1 - sourceGop / 30 - MAX_LATE && behind < 7,
          `seed ${seed}: track ${id}, segment ${segment.msn} is ${behind} s behind`,
        );
      }
    }
  }
});
