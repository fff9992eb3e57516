import test from 'ava';
import { TrackMeter } from '../../../../src/core/meter.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import { Timeline } from '../../../../src/core/timeline.ts';
import type { Track } from '../../../../src/core/track.ts';
import type { MediaUnit } from '../../../../src/providers/intake/media-unit.ts';
import { TrackWriter } from '../../../../src/providers/intake/track-writer.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

const MILLISECONDS = { timebase: { num: 1, den: 1000 }, bits: 32 };
const FRAME = 1000 / 30;
/** As x264 writes them for 30 frames per second: one picture reordered, two (`b-pyramid`), and nothing told of it. */
const ONE = Buffer.from(
  '0164000dffe1001a6764000dacd101419f9f0110000003001000000303c0f142912001000668ebe3cb22c0fdf8f800',
  'hex',
);
const TWO = Buffer.from(
  '0164000dffe1001a6764000dacd941419f9f0110000003001000000303c0f142996001000668ebe3cb22c0fdf8f800',
  'hex',
);

/** Frames from decoding to presentation, in decoding order, from a key frame on. */
const PLAIN = { config: ONE, offsets: [1, 3, 0, 0, 3, 0, 0] };
const PYRAMID = { config: TWO, offsets: [2, 5, 2, 0, 1, 5, 2, 0, 1] };

function publish(tracks: readonly Track[]) {
  const packets: Packet[] = [];
  const writer = new TrackWriter({
    sink: { write: (packet) => packets.push(packet), setTracks: () => {} },
    clock: MILLISECONDS,
    timeline: new Timeline(MILLISECONDS, true),
    onUnsteady: () => {},
  });
  return { writer, tracks, packets };
}

/** Some GOPs with every composition time less by `less` frames, rounded as FLV has it. */
function units(track: Track, offsets: readonly number[], less: number): MediaUnit[] {
  return Array.from({ length: offsets.length * 5 }, (_, i) => ({
    track,
    data: Buffer.alloc(1),
    key: i % offsets.length === 0,
    time: Math.round(i * FRAME),
    compositionTime: Math.round(((offsets[i % offsets.length] as number) - less) * FRAME),
    duration: 0,
  }));
}

for (const [name, { config, offsets }] of Object.entries({ PLAIN, PYRAMID })) {
  for (const less of [0.5, 1, 1.5, 2, 3, 4, 5, 8]) {
    for (const heldBack of [1, 4]) {
      test(`${name}: composition times of ${less} frames too little, ${heldBack} pictures held back`, (t) => {
        const video = videoTrack({ config, framerate: 30 });
        const audio = audioTrack();
        const { writer, packets } = publish([video, audio]);
        const all = units(video, offsets, less);
        const sound = { track: audio, data: Buffer.alloc(1), key: true, time: 0, compositionTime: 0, duration: 1024 };
        writer.start([sound, ...all.slice(0, heldBack)], [video, audio]);
        for (const unit of all.slice(heldBack)) writer.write(unit);
        const video30 = packets.filter(({ track }) => track === video);
        for (const { dts, pts } of video30) t.true(pts >= dts);
        for (const [i, { dts }] of video30.entries()) if (i > 0) t.true(dts > (video30[i - 1] as Packet).dts);
        const shown = video30.map(({ pts }) => pts).sort((a, b) => a - b);
        for (const [i, pts] of shown.entries())
          if (i > 0) t.true(Math.abs(pts - (shown[i - 1] as number) - 3000) <= 200, `${i}: ${pts}`);
        // beside audio as the source has it, within what rounding and a tick make
        const first = packets.find(({ track }) => track === audio) as Packet;
        const start = (shown[0] as number) / 90 - (first.dts * 1000) / audio.timebase.den;
        t.true(Math.abs(start - ((offsets[0] as number) - less) * FRAME) <= 2, `${start}`);
        const meter = new TrackMeter(video);
        for (const packet of video30) meter.add(packet);
        t.true(meter.read().hasBframes);
      });
    }
  }
}

test('frames that are not reordered keep their decoding times, whatever the configuration says', (t) => {
  const video = videoTrack({ config: TWO, framerate: 30 });
  const { writer, packets } = publish([video]);
  writer.start(units(video, [0, 0, 0], 0), [video]);
  t.true(packets.every(({ dts, pts }) => dts === pts));
});

test('a frame that is declared to be shown long before it is decoded moves nothing', (t) => {
  const video = videoTrack({ config: undefined, framerate: 0, timebase: VIDEO_TIMEBASE });
  const { writer, packets } = publish([video]);
  writer.start([], [video]);
  for (const [i, compositionTime] of [0, -8_000_000, -3001, 0].entries())
    writer.write({ track: video, data: Buffer.alloc(1), key: i === 0, time: i * 40, compositionTime, duration: 0 });
  t.deepEqual(
    packets.map(({ dts, pts }) => [dts, pts]),
    [0, 3600, 7200, 10_800].map((time) => [time, time]),
  );
});
