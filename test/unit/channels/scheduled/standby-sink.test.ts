import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { toSeconds } from '../../../../src/core/timebase.ts';
import type { Track } from '../../../../src/core/track.ts';
import { StandbySink } from '../../../../src/channels/scheduled/standby-sink.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const video = (n: number, key = false): Packet => ({
  ...{ track: VIDEO, key, dts: n * 3000, pts: n * 3000, duration: 3000 },
  data: Buffer.from([n]),
});
const audio = (n: number): Packet => ({
  ...{ track: AUDIO, key: true, dts: n * 1600, pts: n * 1600, duration: 1024 },
  data: Buffer.from([n]),
});

class Sink {
  tracks: readonly Track[] = [];
  readonly packets: Packet[] = [];

  setTracks(tracks: readonly Track[]): void {
    this.tracks = tracks;
  }

  write(packet: Packet): void {
    this.packets.push(packet);
  }

  get numbers(): (number | undefined)[] {
    return this.packets.flatMap(({ track, data }) => (track === VIDEO ? data[0] : []));
  }
}

/** When packets are scheduled, in milliseconds: at 30 frames a second. */
const scheduledAt = ({ dts, track }: Packet): number => 1000 * toSeconds(dts, track.timebase);
const FRAME_MS = 1000 / 30;

/** A sink that stands by, to which so many frames were written; every tenth is a key frame. */
async function open(frames: number, tracks: readonly Track[] = [VIDEO, AUDIO]) {
  const held = new StandbySink(scheduledAt);
  const sink = new Sink();
  const play = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n++) {
      if (tracks.includes(VIDEO)) held.write(video(n, n % 10 === 0));
      held.write(audio(n));
      await delay(FRAME_MS);
    }
  };
  held.setTracks(tracks);
  await play(0, frames);
  return { held, sink, play };
}

const upTo = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, n) => from + n);

test('standby media goes on with the first frame that was not written before, however late that is known', async (t) => {
  virtualTime(t);
  for (const first of [20, 30, 40]) {
    const { held, sink, play } = await open(45);
    await held.begun;
    held.attach(sink, first * FRAME_MS + 1);
    t.deepEqual(sink.tracks, [VIDEO, AUDIO]);
    t.deepEqual(sink.numbers, upTo(first, 45));
    await play(45, 48);
    t.deepEqual(sink.numbers, upTo(first, 48));
    t.is(sink.packets[1]?.track, AUDIO);
  }
});

test('a picture that is yet to come is waited for, and not for long', async (t) => {
  virtualTime(t);
  const soon = await open(45);
  soon.held.attach(soon.sink, 50 * FRAME_MS - 1);
  await soon.play(45, 53);
  t.deepEqual(soon.sink.numbers, upTo(50, 53));
  const never = await open(45);
  never.held.attach(never.sink, 50 * FRAME_MS);
  await delay(1900);
  t.deepEqual(never.sink.numbers, []);
  await delay(200);
  t.deepEqual(never.sink.numbers, upTo(40, 45));
});

test('standby media goes on with the last key frame where it is unknown what was written', async (t) => {
  virtualTime(t);
  const { held, sink } = await open(45);
  held.attach(sink);
  t.deepEqual(sink.numbers, upTo(40, 45));
});

test('standby media that was written long ago is dropped, and so is what exceeds the limit', async (t) => {
  virtualTime(t);
  const { held, sink } = await open(305);
  held.attach(sink, 100 * FRAME_MS);
  // five seconds, and the group that was under way then
  t.deepEqual(sink.numbers.slice(0, 1), [150]);
  const large = new StandbySink(scheduledAt);
  large.setTracks([VIDEO]);
  const size = 12 * 1024 * 1024;
  for (const n of [0, 1, 2]) large.write({ ...video(n, true), data: Buffer.alloc(size, n) });
  const rest = new Sink();
  large.attach(rest, 0);
  t.deepEqual(rest.numbers, [1, 2]);
});

test('standby audio without video goes on with the first frame that was not written, and closed media with none', async (t) => {
  virtualTime(t);
  const { held, sink, play } = await open(5, [AUDIO]);
  await held.begun;
  held.attach(sink, scheduledAt(audio(3)));
  await play(5, 6);
  t.deepEqual(
    sink.packets.map(({ data }) => data[0]),
    [3, 4, 5],
  );
  const closed = await open(5);
  closed.held.attach(closed.sink, 1000);
  closed.held.close();
  await delay(3000);
  t.deepEqual(closed.sink.packets, []);
});

test('a change of tracks comes where it was', async (t) => {
  virtualTime(t);
  const { held, sink } = await open(20);
  const other = videoTrack({ width: 1280 });
  held.setTracks([other, AUDIO]);
  held.write({ ...video(20, true), track: other });
  held.attach(sink, 0);
  t.deepEqual(sink.tracks, [other, AUDIO]);
  t.deepEqual(sink.numbers, upTo(0, 20));
  t.is(sink.packets.at(-1)?.track, other);
});

test('a group of pictures of 10.4 s is kept, one that is too long is begun with its next key frame', async (t) => {
  virtualTime(t);
  for (const [seconds, kept] of [
    [10.4, 312],
    [20, 0],
  ] as const) {
    const held = new StandbySink(scheduledAt);
    const sink = new Sink();
    held.setTracks([VIDEO, AUDIO]);
    const frames = seconds * 30;
    for (let n = 0; n < frames; n++) {
      held.write(video(n, n === 0));
      await delay(FRAME_MS);
    }
    held.attach(sink);
    t.is(sink.numbers.length, kept);
    held.write(video(frames));
    held.write(audio(1));
    t.is(sink.packets.at(-1)?.track, AUDIO);
    held.write(video(frames + 1, true));
    held.write(video(frames + 2));
    t.is(sink.numbers.length, kept === 0 ? 2 : kept + 3);
    t.true(sink.packets.find(({ track }) => track === VIDEO)?.key);
    held.close();
  }
});
