import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import type { Track } from '../../../../src/core/track.ts';
import { HeldSink } from '../../../../src/providers/scheduled/held-sink.ts';
import { audioTrack, videoTrack } from '../../../support/packets.ts';
import { virtualTime } from '../../../support/virtual-time.ts';

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

test('what is held goes on from its last key frame, at once where that has just come', async (t) => {
  virtualTime(t);
  const held = new HeldSink();
  const sink = new Sink();
  held.setTracks([VIDEO, AUDIO]);
  for (let n = 0; n < 10; n++) {
    held.write(video(n, n % 4 === 0));
    held.write(audio(n));
  }
  await held.begun;
  held.attach(sink);
  t.deepEqual(sink.tracks, [VIDEO, AUDIO]);
  t.deepEqual(sink.numbers, [8, 9]);
  held.write(video(10));
  t.deepEqual(sink.numbers, [8, 9, 10]);
});

test('a key frame that is about to come is waited for, and not for long', async (t) => {
  virtualTime(t);
  for (const comes of [true, false]) {
    const held = new HeldSink();
    const sink = new Sink();
    held.setTracks([VIDEO]);
    held.write(video(0, true));
    await delay(900);
    held.write(video(1));
    held.attach(sink);
    t.deepEqual(sink.numbers, []);
    await delay(100);
    held.write(video(2, comes));
    await delay(600);
    t.deepEqual(sink.numbers, comes ? [2] : [0, 1, 2]);
  }
});

test('what has no video begins with what comes next, and what was closed with nothing', async (t) => {
  virtualTime(t);
  const held = new HeldSink();
  const sink = new Sink();
  held.setTracks([AUDIO]);
  held.write(audio(0));
  await held.begun;
  held.attach(sink);
  held.write(audio(1));
  t.deepEqual(
    sink.packets.map(({ data }) => data[0]),
    [1],
  );
  const closed = new HeldSink();
  const never = new Sink();
  closed.setTracks([VIDEO]);
  closed.write(video(0, true));
  await delay(900);
  closed.attach(never);
  closed.close();
  await delay(900);
  t.deepEqual(never.packets, []);
});

test('a group of pictures of 10.4 s is kept, one that is too long is begun with its next key frame', async (t) => {
  virtualTime(t);
  for (const [frames, kept] of [
    [312, 312],
    [600, 0],
  ] as const) {
    const held = new HeldSink();
    const sink = new Sink();
    held.setTracks([VIDEO, AUDIO]);
    for (let n = 0; n < frames; n++) held.write(video(n, n === 0));
    await delay(1000);
    held.attach(sink);
    await delay(1000);
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
