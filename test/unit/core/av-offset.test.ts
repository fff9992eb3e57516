import test from 'ava';
import { ArrivalClock } from '../../../src/core/arrival-clock.ts';
import { toSeconds } from '../../../src/core/timebase.ts';
import { seeded } from '../codecs/vectors.ts';
import { audioPackets, audioTrack, videoPackets, videoTrack } from '../../support/media/packets.ts';

const START = 1_700_000_000_000;
const VIDEO = videoTrack();
const [AUDIO, OTHER] = [audioTrack({ id: 1 }), audioTrack({ id: 2 })];

/** Milliseconds after their own time at which packets of each track arrive. */
interface Delays {
  readonly video?: (media: number) => number;
  readonly audio?: (media: number) => number;
  readonly other?: (media: number) => number;
}

/** @returns the clock, and its figures at the end */
function run({ video, audio, other }: Delays, seconds = 20, clock = new ArrivalClock(), from = 0) {
  const range = { from, to: from + seconds };
  const arrivals = [
    ...(video ? videoPackets(VIDEO, range).map((packet) => ({ packet, delay: video })) : []),
    ...(audio ? audioPackets(AUDIO, range).map((packet) => ({ packet, delay: audio })) : []),
    ...(other ? audioPackets(OTHER, range).map((packet) => ({ packet, delay: other })) : []),
  ].map(({ packet, delay }) => {
    const media = toSeconds(packet.dts, packet.track.timebase);
    return { packet, at: START + media * 1000 + delay(media) };
  });
  arrivals.sort((one, next) => one.at - next.at);
  for (const { packet, at } of arrivals) clock.note(packet, at);
  const end = arrivals.at(-1)?.at ?? START;
  return { clock, end, avOffset: clock.avOffset(end) };
}

const near = (value: number | undefined, expected: number): boolean => Math.abs((value ?? Infinity) - expected) <= 10;

test('audio that is labelled 300 ms late or early is seen so, on a network that delays each packet as it likes', (t) => {
  for (const offset of [300, -300, 0]) {
    const random = seeded(5);
    const { avOffset } = run({ video: () => 50 + random() * 40, audio: () => 50 + random() * 40 - offset });
    t.true(near(avOffset?.latest, offset), `${avOffset?.latest}`);
    t.true(near(avOffset?.average, offset), `${avOffset?.average}`);
    t.true(near(avOffset?.worst, offset), `${avOffset?.worst}`);
  }
});

test('video that comes late is the same', (t) => {
  t.true(near(run({ video: () => 300, audio: () => 0 }).avOffset?.latest, 300));
});

test('the average and the worst stay behind an offset that goes away', (t) => {
  const { avOffset } = run({ video: () => 0, audio: (media) => (media < 10 ? 200 : 0) });
  t.true(near(avOffset?.latest, 0));
  t.true(near(avOffset?.worst, -200));
  t.true((avOffset?.average ?? 0) < -80 && (avOffset?.average ?? 0) > -130, `${avOffset?.average}`);
});

test('of several audio tracks, the one that is furthest off counts', (t) => {
  t.true(near(run({ video: () => 0, audio: () => 20, other: () => -150 }).avOffset?.latest, 150));
});

test('nothing is known without both, or of less than two seconds', (t) => {
  t.is(run({ video: () => 0 }).avOffset, undefined);
  t.is(run({ audio: () => 0 }).avOffset, undefined);
  t.is(run({ video: () => 0, audio: () => 0 }, 1.5).avOffset, undefined);
});

test('an offset is not shown for longer than there is audio, or anything', (t) => {
  const { clock, end, avOffset } = run({ video: () => 0, audio: () => -300 }, 10);
  t.true(near(avOffset?.latest, 300));
  t.is(clock.avOffset(end + 10_000)?.latest, undefined);
  const without = run({ video: () => 0 }, 5, clock, 10).avOffset;
  t.is(without?.latest, undefined);
  t.true(near(without?.worst, 300));
});

test('timestamps that jump are no offset', (t) => {
  const { clock } = run({ video: () => 0, audio: () => 0 }, 9);
  const { avOffset } = run({ video: () => -3_590_000, audio: () => -3_590_000 }, 10, clock, 3600);
  t.true(near(avOffset?.worst, 0), `${avOffset?.worst}`);
});
