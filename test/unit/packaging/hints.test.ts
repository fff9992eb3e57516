import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { hintsOf, type Hint } from '../../support/hls/hints.ts';
import { audioPackets, audioTrack, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { arriving, mediaTime } from '../../support/media/segmenter.ts';

/** From when on hints are counted, in seconds. */
const SETTLED = 5;
const TO = 25;
const SHARE = 0.95;

const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** The same sequence in each run, from 0 to 1. */
function noise(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
}

/** As RTMP tells times. */
function inMilliseconds(packets: readonly Packet[]): Packet[] {
  return packets.map((packet) => {
    const dts = Math.round(packet.dts / 90) * 90;
    return { ...packet, dts, pts: dts };
  });
}

/** Shares that were right of some track's hints: of all, and where segments end. */
function shares(hints: readonly Hint[], track?: MediaTrack, from = SETTLED) {
  const settled = hints.filter((hint) => hint.at >= from && (track === undefined || hint.track === track));
  const share = (some: readonly Hint[]): number =>
    some.filter(({ hinted, came }) => hinted === came).length / some.length;
  return { all: share(settled), ends: share(settled.filter(({ atEnd }) => atEnd)) };
}

function assertShares(t: ExecutionContext, tracks: readonly MediaTrack[], hints: readonly Hint[], what: object): void {
  for (const track of tracks) {
    const { all, ends } = shares(hints, track);
    t.true(ends >= SHARE && all >= SHARE, `${track.type} ${track.id}: ${JSON.stringify({ ...what, all, ends })}`);
  }
}

const ORDERS = [
  ['in step', 0],
  ['0.1 s ahead', -0.1],
  ['0.8 s ahead', -0.8],
  ['0.3 s behind', 0.3],
] as const;
for (const framerate of [24_000 / 1001, 25, 30_000 / 1001, 30, 60]) {
  for (const [order, late] of ORDERS) {
    test(`hints at ${framerate.toFixed(2)} frames a second, the audio ${order}, are right at the ends of segments`, (t) => {
      for (const gop of [1, 1.6, 2]) {
        for (const chunkDuration of [0.2, 0.333, 0.5]) {
          for (const segmentDuration of [2, 4]) {
            const isCoarse = segmentDuration === 2;
            const video = videoTrack({ framerate: isCoarse ? 0 : framerate });
            const frames = videoPackets(video, { to: TO, framerate, gop: Math.round(gop * framerate), bytes: 1 });
            const packets = arriving(
              [isCoarse ? inMilliseconds(frames) : frames, 0],
              [audioPackets(AUDIO, { to: TO, bytes: 1 }), late],
            );
            const options = { chunkDuration, segmentDuration, firstSegmentDuration: 1 };
            assertShares(t, [video, AUDIO], hintsOf([video, AUDIO], packets, options), { gop, ...options });
          }
        }
      }
    });
  }
}

test('audio alone has preload hints', (t) => {
  for (const chunkDuration of [0.2, 0.333, 0.5]) {
    const hints = hintsOf([AUDIO], audioPackets(AUDIO, { to: TO }), { chunkDuration });
    assertShares(t, [AUDIO], hints, { chunkDuration });
  }
});

test('hints where audio and video come in no steady order', (t) => {
  const next = noise(1);
  let last = 0;
  const packets = [...videoPackets(VIDEO, { to: TO, gop: 60 }), ...audioPackets(AUDIO, { to: TO })]
    .map((packet) => ({ packet, at: mediaTime(packet) + (packet.track === AUDIO ? next() * 0.2 - 0.1 : 0) }))
    .sort((one, other) => one.at - other.at)
    .map(({ packet }) => packet)
    .filter(({ track, dts }) => track !== AUDIO || (dts > last && (last = dts) > 0));
  assertShares(t, [VIDEO, AUDIO], hintsOf([VIDEO, AUDIO], packets, {}), {});
});

test('hints for renditions, each as late as its encoder', (t) => {
  const large = videoTrack({ id: 2, name: 'large', bypass: false, keyFrameInterval: 60 });
  const small = videoTrack({ id: 3, name: 'small', bypass: false, keyFrameInterval: 60 });
  const packets = arriving(
    [videoPackets(VIDEO, { to: TO, gop: 60 }), 0],
    [videoPackets(large, { to: TO, gop: 60 }), 0.35],
    [videoPackets(small, { to: TO, gop: 60 }), 0.25],
    [audioPackets(AUDIO, { to: TO }), 0.05],
  );
  const tracks = [VIDEO, large, small, AUDIO];
  assertShares(t, tracks, hintsOf(tracks, packets, {}), {});
});

test('hints where frames are missing, and where an encoder counts frames and their rate varies', (t) => {
  const next = noise(2);
  const lossy = videoPackets(VIDEO, { to: TO, gop: 60 }).filter(({ key }) => key || next() > 0.05);
  assertShares(t, [VIDEO], hintsOf([VIDEO], lossy, {}), { lossy: true });
  let dts = 0;
  const varying = videoPackets(VIDEO, { to: TO, gop: 60 }).map((packet) => {
    dts += Math.round(3000 * (0.8 + next() * 0.4));
    return { ...packet, dts, pts: dts };
  });
  assertShares(t, [VIDEO], hintsOf([VIDEO], varying, {}), { varying: true });
});

test('key frames that come at odds: no hint at a segment that does not begin, and the audio is right all the same', (t) => {
  const next = noise(3);
  const packets = arriving(
    [
      videoPackets(VIDEO, { to: 60, gop: 1000 }).map((packet, at) => ({ ...packet, key: at === 0 || next() < 1 / 40 })),
      0,
    ],
    [audioPackets(AUDIO, { to: 60 }), 0],
  );
  const hints = hintsOf([VIDEO, AUDIO], packets, {});
  const { all } = shares(hints, VIDEO);
  t.true(all > 0.7, `${all}`);
  t.true(shares(hints, AUDIO).all >= SHARE);
});

test('an interval that becomes another is believed when it has come again', (t) => {
  const [before, after] = [
    videoPackets(VIDEO, { to: 20, gop: 60 }),
    videoPackets(VIDEO, { from: 20, to: 60, gop: 30 }),
  ];
  const wrong = hintsOf([VIDEO], [...before, ...after], {}).filter(
    ({ at, hinted, came }) => at >= SETTLED && hinted !== came,
  );
  t.true(wrong.length <= 1, JSON.stringify(wrong));
});

test('hints are right from the second key frame on, and behind a return of the publisher', (t) => {
  for (const gop of [1, 2]) {
    for (const segmentDuration of [2, 6]) {
      for (const late of [0, -0.1, 0.3]) {
        const media = (from: number, to: number): Packet[] =>
          arriving([videoPackets(VIDEO, { from, to, gop: gop * 30 }), 0], [audioPackets(AUDIO, { from, to }), late]);
        const packets = [...media(0, 9), 'left', ...media(60, 69), 'left', ...media(20, 29)] as const;
        const hints = hintsOf([VIDEO, AUDIO], packets, { segmentDuration, firstSegmentDuration: 1 });
        for (const track of [VIDEO, AUDIO]) {
          const { all, ends } = shares(hints, track, gop + Math.abs(late));
          t.true(
            all >= SHARE && ends >= SHARE,
            `${track.type}: ${JSON.stringify({ gop, segmentDuration, late, all, ends })}`,
          );
        }
      }
    }
  }
});
