import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import { Timeline } from '../../../../src/core/timeline.ts';
import type { Track } from '../../../../src/core/track.ts';
import type { MediaUnit } from '../../../../src/providers/intake/media-unit.ts';
import { TrackWriter } from '../../../../src/providers/intake/track-writer.ts';

const CLOCK = { timebase: VIDEO_TIMEBASE, bits: 33 };
const RANGE = 2 ** 33;
const video: Track = {
  id: 0,
  name: 'Video',
  type: 'video',
  codec: 'VP8',
  timebase: VIDEO_TIMEBASE,
  bypass: false,
  width: 160,
  height: 90,
  bitrate: 0,
  framerate: 0,
  keyFrameInterval: 0,
};
const audio: Track = {
  id: 1,
  name: 'Audio',
  type: 'audio',
  codec: 'OPUS',
  timebase: { num: 1, den: 48_000 },
  bypass: false,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};
const events: Track = { id: 2, name: 'Data', type: 'data', codec: 'ID3v2', timebase: VIDEO_TIMEBASE, bypass: false };

function setUp() {
  const packets: Packet[] = [];
  const tracks: (readonly number[])[] = [];
  let unsteady = 0;
  const writer = new TrackWriter({
    sink: { write: (packet) => packets.push(packet), setTracks: (now) => tracks.push(now.map(({ id }) => id)) },
    clock: CLOCK,
    timeline: new Timeline(CLOCK, true),
    onUnsteady: () => unsteady++,
  });
  return { writer, packets, tracks, unsteady: () => unsteady };
}

function unit(track: Track, time: number, compositionTime = 0, duration = 0): MediaUnit {
  return { track, time: (time + RANGE) % RANGE, compositionTime, duration, key: true, data: Buffer.alloc(1) };
}

test('begins at the earliest time of what was held, also around a wrap', (t) => {
  const { writer, packets, tracks } = setUp();
  writer.start([unit(video, 900), unit(audio, -900, 0, 960)], [video, audio]);
  writer.write(unit(video, 4500, 3000));
  writer.write(unit(audio, 900, 0, 960));
  t.deepEqual(tracks, [[0, 1]]);
  t.deepEqual(
    packets.map(({ track, dts, pts }) => [track.id, dts, pts]),
    [
      [0, 1800, 1800],
      [1, 0, 0],
      [0, 5400, 8400],
      [1, 960, 960],
    ],
  );
});

test('tracks come; audio and video that leave pause, and events go', (t) => {
  const { writer, tracks, unsteady } = setUp();
  writer.start([unit(video, 0)], [video, audio]);
  writer.write(unit(events, 100));
  writer.keep(new Set([0, 2]));
  writer.keep(new Set([0, 2]));
  writer.write(unit(audio, 200, 0, 960));
  t.deepEqual(tracks, [
    [0, 1],
    [0, 1, 2],
  ]);
  t.is(unsteady(), 0);
  for (let turn = 0; turn < 60; turn++) {
    writer.keep(new Set([0]));
    writer.write(unit(events, 300 + turn));
  }
  t.true(unsteady() > 0);
});
