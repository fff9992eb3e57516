import test from 'ava';
import { GopCache } from '../../../src/core/gop-cache.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { seeded } from '../codecs/vectors.ts';
import { audio, VIDEO, video } from './support.ts';

const LIMITS = { bytes: 100_000, seconds: 10 };
const LOW = { ...VIDEO, id: 7 };

function replayed(cache: GopCache): Packet[] {
  const packets: Packet[] = [];
  cache.replay((packet) => void packets.push(packet));
  return packets;
}

const seconds = (packets: readonly Packet[]) => packets.map(({ dts, track }) => dts / track.timebase.den);
/** Track, seconds, and a K for a video key frame. */
const told = (cache: GopCache) =>
  replayed(cache).map(
    ({ dts, track, key }) => `${track.id}@${dts / track.timebase.den}${key && track.type === 'video' ? 'K' : ''}`,
  );

test('a GOP cache replays the same packets since the last key frame, in order of arrival', (t) => {
  const cache = new GopCache(LIMITS);
  const packets: Packet[] = [];
  for (let i = 0; i <= 25; i++) packets.push(video(i / 10, i % 10 === 0), audio(i / 10));
  for (const packet of packets) cache.packet(packet);
  const got = replayed(cache);
  t.deepEqual(got, packets.slice(40));
  t.is(got[0], packets[40]);
  t.is(cache.bytes, 6 * 110);
  cache.close();
  t.deepEqual([replayed(cache).length, cache.bytes], [0, 0]);
});

test('a picture whose beginning was missed waits for its key frame', (t) => {
  const cache = new GopCache(LIMITS);
  for (const packet of [video(0, false), audio(0), video(0.1, true), video(0.2, false)]) cache.packet(packet);
  t.deepEqual(told(cache), ['0@0.1K', '0@0.2']);
});

test('a GOP cache of audio alone keeps the last second or two', (t) => {
  const cache = new GopCache(LIMITS);
  for (let i = 0; i <= 1000; i++) cache.packet(audio(i / 50));
  const [first] = seconds(replayed(cache));
  t.true((first as number) >= 18 && (first as number) <= 19, String(first));
});

test('a GOP cache of several video tracks begins each with a key frame, the oldest of the last ones first', (t) => {
  const cache = new GopCache(LIMITS);
  for (let i = 0; i <= 6; i++) {
    cache.packet(video(i, i % 3 === 0));
    cache.packet(video(i, i % 3 === 2, 50, LOW));
  }
  t.deepEqual(told(cache), ['7@5K', '0@6K', '7@6']);
});

test('frames of another track without their key frame are of no use', (t) => {
  const cache = new GopCache(LIMITS);
  const order: [seconds: number, key: boolean, track: typeof LOW][] = [
    [0, true, VIDEO],
    [0, true, LOW],
    [1, true, VIDEO],
    [1, false, LOW],
    [2, true, LOW],
    [2, false, VIDEO],
  ];
  for (const [at, key, track] of order) cache.packet(video(at, key, 50, track));
  t.deepEqual(told(cache), ['0@1K', '7@2K', '0@2']);
});

test('packets that a reader still needs stay in the GOP cache, from the key frame before them', (t) => {
  let needed = 1.5;
  const cache = new GopCache(LIMITS, ({ type }: Track) => (type === 'video' ? needed : Infinity));
  for (let i = 0; i <= 45; i++) cache.packet(video(i / 10, i % 10 === 0));
  t.is(seconds(replayed(cache))[0], 1);
  needed = 4.1;
  for (let i = 46; i <= 56; i++) cache.packet(video(i / 10, i % 10 === 0));
  t.is(seconds(replayed(cache))[0], 4);
});

test('sound that is still needed holds the picture back', (t) => {
  const cache = new GopCache(LIMITS, ({ type }: Track) => (type === 'audio' ? 0.75 : Infinity));
  for (let i = 0; i <= 25; i++) {
    cache.packet(video(i / 10, i % 10 === 0));
    cache.packet(audio(i / 10));
  }
  const got = replayed(cache);
  t.is(got[0]?.track.type, 'audio');
  t.is(seconds(got)[0], 0.8);
  t.deepEqual(seconds(got.filter(({ track }) => track.type === 'video'))[0], 1, 'and that begins with a key frame');
});

test('a group longer than the limits is given up, sound is not', (t) => {
  const cache = new GopCache({ bytes: 100_000, seconds: 2 });
  for (let i = 0; i <= 40; i++) {
    cache.packet(video(i / 10, i === 0));
    cache.packet(audio(i / 10));
  }
  const got = replayed(cache);
  t.true(got.length > 5);
  t.deepEqual(
    got.filter(({ track }) => track.type === 'video'),
    [],
  );
  cache.packet(video(4.1, false));
  cache.packet(video(4.2, true));
  cache.packet(video(4.3, false));
  t.deepEqual(told(cache).slice(-2), ['0@4.2K', '0@4.3']);
});

test('a new configuration under the same id takes the place of the old one', (t) => {
  const cache = new GopCache(LIMITS);
  cache.packet(video(0, true));
  cache.packet(video(0.1, false));
  const other = { ...VIDEO, width: 640 };
  cache.packet(video(0.2, true, 100, other));
  t.deepEqual(
    replayed(cache).map(({ track }) => track),
    [other],
  );
});

test('a GOP cache keeps its limits, and no frame without its key frame, whatever comes', (t) => {
  const random = seeded(5);
  for (let round = 0; round < 50; round++) {
    const limits = { bytes: 2000 + Math.floor(random() * 3000), seconds: 0.5 + random() * 2 };
    const cache = new GopCache(limits, () => (random() < 0.5 ? Infinity : random() * 8));
    for (let i = 0; i < 400; i++) {
      const at = i / 50;
      const bytes = 10 + Math.floor(random() * 300);
      const track = random() < 0.5 ? VIDEO : LOW;
      cache.packet(random() < 0.4 ? audio(at) : video(at, random() < 0.05, bytes, track));
      const got = replayed(cache);
      t.true(cache.bytes <= limits.bytes);
      t.is(
        cache.bytes,
        got.reduce((sum, { data }) => sum + data.length, 0),
      );
      const oldest = seconds(got)[0];
      t.true(oldest === undefined || at - oldest <= limits.seconds);
      for (const id of [0, 7]) {
        const first = got.find((packet) => packet.track.id === id);
        t.true(first === undefined || first.key);
      }
    }
  }
});

test('a GOP cache beyond a limit first drops what is before the last key frame', (t) => {
  const cache = new GopCache({ bytes: 1000, seconds: 10 }, (_track, now) => now - 2);
  for (let i = 0; i <= 10; i++) cache.packet(video(i / 10, i === 0 || i === 2, 100));
  t.deepEqual(
    seconds(replayed(cache)),
    [2, 3, 4, 5, 6, 7, 8, 9, 10].map((i) => i / 10),
  );
});

test('a replay of audio alone begins a second ago, or earlier where that is requested', (t) => {
  const cache = new GopCache(LIMITS, (_track, now) => now - 4);
  for (let i = 0; i <= 500; i++) cache.packet(audio(i / 50));
  const first = (from: number): number | undefined => {
    const packets: Packet[] = [];
    cache.replayFrom(from, (packet) => void packets.push(packet));
    return seconds(packets)[0];
  };
  t.deepEqual([first(Infinity), first(7)], [9, 7]);
  t.deepEqual([cache.reaches(7), cache.reaches(1)], [true, false]);
});
