import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { RUNS } from '../../../src/packaging/frame-run.ts';
import { unitsOf } from '../../../src/packaging/ts-units.ts';
import { parseFragment } from '../../support/media/boxes.ts';
import { audioPackets, audioTrack, interleaved, videoTrack } from '../../support/media/packets.ts';
import { mediaTime, startSegmenter } from '../../support/media/segmenter.ts';

const video = videoTrack();
const sound = audioTrack();

/** From each second on, one of so many of 30 frames a second comes. */
const RATES = [
  { from: 0, every: 1 },
  { from: 10, every: 6 },
  { from: 20, every: 30 },
  { from: 30, every: 90 },
  { from: 45, every: 1 },
] as const;

/** What a camera at night, or a screen that hardly changes, brings of a minute. Key frames are 10 s apart, or at the next frame. */
function falling(): Packet[] {
  const packets: Packet[] = [];
  let keys = 0;
  for (let frame = 0; frame < 60 * 30; frame++) {
    const time = frame / 30;
    if (frame % (RATES.findLast(({ from }) => from <= time)?.every ?? 1) > 0) continue;
    const key = time >= keys * 10;
    if (key) keys++;
    const dts = Math.round(time * 1000) * 90;
    packets.push({ track: video, dts, pts: dts, duration: 0, key, data: Buffer.alloc(100, frame) });
  }
  return packets;
}

const durations = (segments: readonly Segment<unknown>[]) =>
  segments.map(({ duration }) => Math.round(duration * 10) / 10);

test('a picture lasts until the next one, however long that takes', (t) => {
  const { segmenter, segments, packager } = startSegmenter([video, sound]);
  const targets = new Set<number>();
  for (const packet of interleaved(falling(), audioPackets(sound, { to: 60 }))) {
    segmenter.push(packet);
    if (mediaTime(packet) > 2) targets.add(packager(0).partTarget);
  }
  segmenter.finish();
  t.deepEqual(durations(segments(0)), [10, 10, 10, 12, 8, 10]);
  t.deepEqual([...targets], [0.5]);
  // by its decode times no picture is further from the one before than that is said to last
  let end: number | undefined;
  const shown: number[] = [];
  for (const { data, duration } of segments(0).flatMap(({ parts }) => parts)) {
    const { baseTime, duration: ticks, samples } = parseFragment(data);
    if (end !== undefined) t.is(baseTime, end);
    end = baseTime + ticks;
    t.true(Math.abs(duration - ticks / 90_000) < 1e-9);
    let at = baseTime;
    for (const { duration: lasts, offset = 0 } of samples) {
      shown.push(at + offset);
      at += lasts;
    }
  }
  t.deepEqual(
    shown,
    falling().map(({ pts }) => pts),
  );
});

test('every frame in MPEG-TS has its own time', (t) => {
  const { segmenter, segments } = startSegmenter([video, sound], { form: RUNS, chunkDuration: 2 });
  for (const packet of interleaved(falling(), audioPackets(sound, { to: 60 }))) segmenter.push(packet);
  segmenter.finish();
  t.deepEqual(durations(segments(0)), [10, 10, 10, 12, 8, 10]);
  const runs = segments(0).flatMap(({ parts }) => parts.map(({ data }) => data));
  t.deepEqual(
    unitsOf([{ track: video, runs }]).map(({ dts, pts }) => [dts, pts]),
    falling().map(({ dts, pts }) => [dts, pts]),
  );
});

test('pictures that come at no steady rate are not cut short', (t) => {
  const { segmenter, segments } = startSegmenter([video]);
  let dts = 0;
  const packets = Array.from({ length: 400 }, (_, frame) => {
    const packet = { track: video, dts, pts: dts, duration: 0, key: frame % 40 === 0, data: Buffer.alloc(10) };
    dts += [3000, 30_000, 6000, 75_000, 18_000][frame % 5] as number;
    return packet;
  });
  for (const packet of packets) segmenter.push(packet);
  const starts = segments(0)
    .slice(1)
    .map(({ parts: [first] }) => first && parseFragment(first.data).baseTime);
  t.true(starts.every((start) => packets.some((packet) => packet.key && packet.dts === start)));
});
