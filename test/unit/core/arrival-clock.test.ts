import test from 'ava';
import { ArrivalClock } from '../../../src/core/arrival-clock.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { audioPackets, audioTrack, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { mediaTime } from '../../support/media/segmenter.ts';

const START = 1_700_000_000_000;
const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** When a packet arrives, in seconds after the start, by its decoding time and whether it is of the video. */
type Arrival = (media: number, isVideo: boolean) => number;

/** Lets audio and video arrive. @returns by how many milliseconds the clock is later than the newest of a moment */
function run(
  arrival: Arrival,
  { to = 30, from = 0, clock = new ArrivalClock(), change = (packet: Packet) => packet } = {},
) {
  const arrivals = [...videoPackets(VIDEO, { from, to }), ...audioPackets(AUDIO, { from, to })]
    .map((packet) => ({ packet: change(packet), at: arrival(mediaTime(packet), packet.track === VIDEO) }))
    .sort((one, other) => one.at - other.at);
  const errors = arrivals.map(({ packet, at }) => {
    clock.note(packet, START + at * 1000);
    return { at, error: clock.at(shown(packet)) - START - at * 1000 };
  });
  return {
    clock,
    errors,
    since: (seconds: number) => errors.filter(({ at }) => at >= seconds).map(({ error }) => error),
  };
}

function shown(packet: Packet): number {
  return packet.track === VIDEO ? packet.pts / 90_000 : mediaTime(packet);
}

/** No packet is labelled later than it arrived, and after a time none much earlier. */
function assertTrue(
  t: import('ava').ExecutionContext,
  { errors, since }: ReturnType<typeof run>,
  { after = 3, early = 400 } = {},
) {
  t.true(Math.max(...errors.map(({ error }) => error)) <= 60);
  t.true(Math.min(...since(after)) >= -early);
}

/** The same sequence in each run. */
function noise(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
}

test('an arrival clock knows no time before a packet has arrived', (t) => {
  t.is(new ArrivalClock().at(1), Infinity);
  t.is(new ArrivalClock().settlesIn(START), 0);
});

test('an arrival clock follows a steady publisher', (t) => {
  const { errors } = run((media) => media);
  t.true(errors.every(({ error }) => Math.abs(error) < 1));
});

test('a publisher that starts with a burst stays ahead', (t) => {
  assertTrue(
    t,
    run((media) => Math.max(0, media - 0.8)),
  );
});

test('a publisher that starts with a burst, and then waits until its time has come', (t) => {
  assertTrue(
    t,
    run((media) => (media < 0.8 ? 0 : media)),
  );
});

test('an encoder that starts with a backlog, and sends it at twice the speed', (t) => {
  assertTrue(
    t,
    run((media) => Math.max(media / 2, media - 2)),
  );
});

test('a clock that is fast, or slow, by 500 ppm', (t) => {
  for (const ppm of [-500, 500])
    assertTrue(
      t,
      run((media) => media * (1 + ppm / 1e6), { to: 600 }),
      { early: 60 },
    );
});

test('the jitter of packets is measured for each track, whatever jumps', (t) => {
  t.is(new ArrivalClock().jitter(0), 0);
  const next = noise(2);
  const { clock } = run((media, isVideo) => media + (isVideo ? next() * 0.2 : 0));
  // two numbers between 0 and 200 differ by a third of that on average
  t.true(clock.jitter(VIDEO.id) > 40 && clock.jitter(VIDEO.id) < 95, `${clock.jitter(VIDEO.id)}`);
  t.true(clock.jitter(AUDIO.id) < 1, `${clock.jitter(AUDIO.id)}`);
  run((media) => media - 1000, { from: 1030, to: 1031, clock });
  t.true(clock.jitter(VIDEO.id) < 95, `${clock.jitter(VIDEO.id)}`);
  run((media) => media - 1000, { from: 1031, to: 1060, clock });
  t.true(clock.jitter(VIDEO.id) < 1, `${clock.jitter(VIDEO.id)}`);
});

test('an arrival clock tolerates jitter of 200 ms', (t) => {
  const next = noise(1);
  const { clock } = run((media) => media + next() * 0.2, { to: 60 });
  const offset = clock.at(0) - START;
  t.true(offset > -25 && offset < 45, `${offset}`);
});

test('a publisher that sends a second at a time', (t) => {
  const { clock } = run((media) => Math.ceil(media));
  t.true(Math.abs(clock.at(0) - START) <= 40);
});

test('packets that were held up for some seconds and then come at once do not move the arrival clock', (t) => {
  const { clock, errors } = run((media) => (media >= 10 && media < 14 ? 14 : media));
  t.true(Math.max(...errors.map(({ error }) => error)) <= 20);
  t.true(Math.abs(clock.at(0) - START) <= 20);
});

test('a publisher that stays late is followed', (t) => {
  const late = run((media) => (media < 10 ? media : media + 5));
  t.true(Math.min(...late.since(17)) > -40);
  t.true(Math.max(...late.errors.map(({ error }) => error)) <= 60);
});

test('frames that are reordered are never shown before they have arrived', (t) => {
  const order = [3, 0, 0, 0];
  const reordered = run((media) => media, {
    change: (packet) =>
      packet.track === VIDEO ? { ...packet, pts: packet.dts + (order[(packet.dts / 3000) % 4] ?? 0) * 3000 } : packet,
  });
  assertTrue(t, reordered);
});

test('a presentation time that cannot be is not believed', (t) => {
  const { clock } = run((media) => media, {
    change: (packet) => (packet.dts === 90_000 ? { ...packet, pts: packet.dts + 900_000 } : packet),
  });
  t.true(Math.abs(clock.at(0) - START) < 1);
});

test('audio that is ahead of the video counts', (t) => {
  assertTrue(
    t,
    run((media, isVideo) => (isVideo ? media + 0.3 : media)),
  );
});

test('an arrival clock follows when the clock of this machine is set', (t) => {
  for (const step of [-5, 5]) {
    const { since } = run((media) => media + (media < 10 ? 0 : step));
    t.true(since(17).every((error) => Math.abs(error) <= 40));
  }
});

for (const jump of [-3600, -2, 3600]) {
  test(`timestamps that jump by ${jump} s, the audio's half a second after the video's`, (t) => {
    const clock = new ArrivalClock();
    const begin = 5000;
    const arrival = (media: number) => media - begin;
    run(arrival, { clock, from: begin, to: begin + 10 });
    const jumped = (media: number, isVideo: boolean) => media - begin - jump + (isVideo ? 0 : 0.5);
    const at = begin + 10 + jump;
    const { since } = run(jumped, { clock, from: at, to: at + 10 });
    t.true(since(13).every((error) => error <= 60 && error >= -600));
  });
}

test('a track that was away for a while and one that joins are on the same clock', (t) => {
  const { clock } = run((media, isVideo) => media + (isVideo ? 0.1 : 0), { to: 5 });
  for (const packet of videoPackets(VIDEO, { from: 30, to: 40 })) clock.note(packet, START + mediaTime(packet) * 1000);
  t.true(Math.abs(clock.at(0) - START) <= 40);
  const other = audioTrack({ id: 7 });
  for (const packet of audioPackets(other, { from: 40, to: 45 }))
    clock.note(packet, START + mediaTime(packet) * 1000 - 200);
  t.true(Math.abs(clock.at(0) - START + 200) <= 40);
});

test('a start that is a burst is waited for, but not for long', (t) => {
  const clock = new ArrivalClock();
  const note = (media: number, at: number) => {
    for (const packet of videoPackets(VIDEO, { from: media, to: media + 0.04 })) clock.note(packet, START + at);
  };
  note(0, 0);
  t.is(clock.settlesIn(START), 100);
  note(0.4, 10);
  t.is(clock.settlesIn(START + 10), 100);
  t.is(clock.settlesIn(START + 60), 50);
  t.is(clock.settlesIn(START + 110), 0);
  for (let at = 0; at <= 2000; at += 100) note(1 + at / 400, at);
  t.is(clock.settlesIn(START + 2000), 0);
});
