import test from 'ava';
import { AlignedClock } from '../../../../src/channels/multiplex/aligned-clock.ts';
import { seeded } from '../../codecs/vectors.ts';
import { mediaTime } from '../../../support/media/segmenter.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
/** What a viewer notices. */
const LIMIT_MS = 40;

/** How much later than it could a packet arrives, in milliseconds; and how many arrive together. */
const JITTERS: Readonly<Record<string, (random: () => number) => number>> = {
  none: () => 0,
  'up to 30 ms': (random) => random() * 30,
  'up to 120 ms': (random) => random() * 120,
  'exponential, 40 ms on average': (random) => -Math.log(1 - random()) * 40,
  'either 0 or 80 ms': (random) => (random() < 0.5 ? 80 : 0),
  'heavy-tailed': (random) => Math.min(900, 4 / Math.sqrt(1 - random() * 0.9999)),
};

interface Way {
  readonly seed: number;
  readonly jitter: (random: () => number) => number;
  /** Node time at media time 0, in milliseconds. */
  readonly base: number;
  readonly seconds: number;
  /** How much faster the source's clock is, as a share. */
  readonly drift?: number;
  readonly type?: 'audio' | 'video';
}

/** Lets a source arrive. @returns offsets after it has settled, by media time, and how far each is from the truth */
function run({ seed, jitter, base, seconds, drift = 0, type }: Way) {
  const random = seeded(seed);
  const clock = new AlignedClock();
  const packets = interleaved(
    type === 'audio' ? [] : videoPackets(VIDEO, { to: seconds }),
    type === 'video' ? [] : audioPackets(AUDIO, { to: seconds }),
  );
  const sent = (media: number): number => base + (media * 1000) / (1 + drift);
  const offsets: { readonly media: number; readonly offset: number; readonly error: number }[] = [];
  let last = 0;
  let fixedAt: number | undefined;
  for (const packet of packets) {
    const media = mediaTime(packet);
    // a connection keeps the order
    last = Math.max(last, sent(media) + jitter(random));
    clock.note(packet, last);
    if (fixedAt === undefined && clock.settled(last)) {
      clock.fix();
      fixedAt = last - base;
    }
    if (fixedAt !== undefined)
      offsets.push({ media, offset: clock.offset, error: clock.offset + media * 1000 - sent(media) });
  }
  return { offsets, fixedAt: fixedAt ?? Infinity, clock };
}

for (const [name, jitter] of Object.entries(JITTERS)) {
  test(`two sources stay within ${LIMIT_MS} ms of how they arrive, jitter ${name}`, (t) => {
    for (let seed = 1; seed <= 12; seed++) {
      const video = run({ seed, jitter, base: 5000, seconds: 60, type: 'video' });
      const audio = run({
        seed: 100 + seed,
        jitter: JITTERS['up to 30 ms'] as typeof jitter,
        base: 7321,
        seconds: 60,
        type: 'audio',
      });
      for (const { fixedAt } of [video, audio]) t.true(fixedAt <= 3500, `seed ${seed}: ${fixedAt} ms`);
      const errors = [...video.offsets, ...audio.offsets].map(({ error }) => error);
      const [least, most] = [Math.min(...errors), Math.max(...errors)];
      t.true(most - least <= LIMIT_MS, `seed ${seed}: ${least} to ${most} ms`);
    }
  });
}

test('jitter does not move the mapping, but to a truer one', (t) => {
  const { offsets } = run({ seed: 3, jitter: JITTERS['up to 30 ms'] as Way['jitter'], base: 1000, seconds: 120 });
  t.is(new Set(offsets.map(({ offset }) => offset)).size, 1);
});

test('drift is followed steadily, in either direction', (t) => {
  for (const drift of [200e-6, -200e-6]) {
    const way = { seed: 5, jitter: JITTERS['up to 30 ms'] as Way['jitter'], base: 1000, seconds: 1200, drift };
    const { offsets } = run(way);
    const errors = offsets.map(({ error }) => Math.abs(error));
    t.true(Math.max(...errors) <= 20, `${Math.max(...errors)} ms`);
    const steps = offsets.slice(1).map(({ offset, media }, i) => {
      const before = offsets[i] as (typeof offsets)[number];
      return Math.abs(offset - before.offset) / Math.max(0.02, media - before.media);
    });
    t.true(Math.max(...steps) <= 2.5, `${Math.max(...steps)} ms a second`);
  }
});

test('a source that was held up and catches up does not move it', (t) => {
  const { clock, offsets } = run({ seed: 1, jitter: () => 0, base: 1000, seconds: 10 });
  const before = offsets.at(-1)?.offset as number;
  for (const packet of videoPackets(VIDEO, { from: 10, to: 14 })) clock.note(packet, 15_000);
  for (const packet of videoPackets(VIDEO, { from: 14, to: 30 })) clock.note(packet, 1000 + mediaTime(packet) * 1000);
  t.is(clock.offset, before);
});

test('times that jump are followed at once, those of a source that has paused after a while', (t) => {
  const { clock } = run({ seed: 1, jitter: () => 0, base: 1000, seconds: 10 });
  for (const packet of videoPackets(VIDEO, { from: 100, to: 101 }))
    clock.note(packet, 11_000 + (mediaTime(packet) - 100) * 1000);
  t.is(Math.round(clock.offset), 11_000 - 100_000);
  for (const packet of videoPackets(VIDEO, { from: 101, to: 104 }))
    clock.note(packet, 20_000 + (mediaTime(packet) - 101) * 1000);
  t.is(Math.round(clock.offset), 20_000 - 101_000);
});

test('the burst that a relay begins with is no arrival', (t) => {
  const clock = new AlignedClock();
  const at = (packet: Parameters<typeof clock.note>[0]): number => 50_000 + mediaTime(packet) * 1000;
  for (const packet of videoPackets(VIDEO, { to: 4 })) clock.note(packet, 54_000);
  t.false(clock.settled(54_000));
  for (const packet of videoPackets(VIDEO, { from: 4, to: 6 })) clock.note(packet, at(packet));
  t.true(clock.settled(56_000));
  t.is(Math.round(clock.offset), 50_000);
});

test('frames that are reordered count from when they are shown', (t) => {
  const clock = new AlignedClock();
  for (const packet of videoPackets(VIDEO, { to: 3 })) {
    const pts = packet.dts + 9000;
    clock.note({ ...packet, pts }, 1000 + (pts / 90_000) * 1000);
  }
  t.is(Math.round(clock.offset), 1000);
});

test('an aligned clock without media knows no offset', (t) => {
  const clock = new AlignedClock();
  t.is(clock.offset, Infinity);
  t.false(clock.settled(1e6));
});
