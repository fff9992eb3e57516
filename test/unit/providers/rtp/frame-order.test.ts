import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import { joinNals } from '../../../../src/codecs/nal.ts';
import { TrackMeter } from '../../../../src/core/meter.ts';
import { FaultLog } from '../../../../src/log/log.ts';
import { RtpClock } from '../../../../src/protocols/rtp/receive/clock.ts';
import type { MediaUnit } from '../../../../src/providers/intake/media-unit.ts';
import { VideoIntake } from '../../../../src/providers/intake/video-intake.ts';
import { FirstFrames } from '../../../../src/providers/rtp/first-frames.ts';
import { RtpLane, type LaneEvent } from '../../../../src/providers/rtp/lane.ts';
import { FrameOrder, reorderedIn } from '../../../../src/providers/rtp/frame-order.ts';
import { h264Pps, h264Slice, h264Sps, type SpsOptions } from '../../../support/media/nal-build.ts';
import { until } from '../../../support/time/until.ts';
import { box, samples, vector } from '../../codecs/vectors.ts';

const STEP = 3600;

/** A lane of H.264 whose SPS does not tell how many pictures are reordered. */
function setUp(t: ExecutionContext, sps: SpsOptions = {}) {
  const faults = new FaultLog(pino({ level: 'silent' }));
  t.teardown(() => faults.close());
  const units: MediaUnit[] = [];
  const lane: RtpLane = new RtpLane({
    kind: 'video',
    format: { encoding: 'H264', clockRate: 90_000, parameters: {} },
    waitMs: 0,
    faults,
    source: new VideoIntake({ id: 0, codec: 'H264' }),
    clock: new RtpClock(true).track(90_000, true),
    onEvent: (event) => first.push(event),
    onLost: () => {},
  });
  const first = new FirstFrames((event) => {
    const unit = event.lane.unit(event);
    if (unit !== undefined) units.push(unit);
    passed.push(event.now);
  });
  const passed: number[] = [];
  let sequence = 0;
  /** @param picture its place in the order of output, @param idr where that begins anew */
  const send = (picture: number, idr?: number): void => {
    const isIdr = picture === idr;
    const slice = h264Slice({ idr: isIdr, order: ((picture - (idr ?? 0)) * 2) & 0xff });
    const nals = isIdr ? [h264Sps(sps), h264Pps(), slice] : [slice];
    for (const [i, payload] of nals.entries()) {
      const marker = i === nals.length - 1;
      const timestamp = (picture * STEP) >>> 0;
      lane.push({ payloadType: 96, ssrc: 1, sequence: sequence++, timestamp, marker, payload }, sequence);
    }
  };
  return { lane, units, passed, first, send };
}

test('picture order counts give the order of frames', (t) => {
  const order = new FrameOrder(box(vector('h264-high-bframes.mp4'), 'avcC'));
  const units = samples(vector('h264-high-bframes.mp4'));
  t.deepEqual(
    units.map((unit) => order.step(unit)),
    [1, 3, 0, 0, 3, 0, 0, 1],
  );
  t.is(order.step(Buffer.alloc(0)), 0);
  // IDR pictures begin anew
  t.is(order.step(units[0] as Buffer), 1);
  t.is(order.peek(units[1] as Buffer), 3);
  t.is(order.step(units[1] as Buffer), 3);
  const own = new FrameOrder(buildAvcConfig({ sps: [h264Sps()], pps: [h264Pps()] }));
  const picture = (count: number, idr = false) => own.step(joinNals([h264Slice({ order: count, idr })]));
  // one count for a frame, across the end of 8 bits
  t.deepEqual(
    [picture(250, true), picture(251), picture(252), picture(0), picture(254), picture(3)],
    [1, 1, 1, 4, 0, 3],
  );
  t.deepEqual([0, 1, 2, 3, 4, 8, 9].map(reorderedIn), [0, 0, 1, 2, 2, 3, 4]);
});

test('B-frames without reorder numbers have their decoding times from the first frame on', (t) => {
  const { units, send } = setUp(t);
  const order = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11];
  for (const picture of order) send(picture, 0);
  t.is(units.length, order.length);
  const times = units.map(({ time }) => Math.round(time));
  t.deepEqual(
    times,
    times.map((_, i) => (times[0] as number) + i * STEP),
  );
  t.deepEqual(
    units.map(({ time, compositionTime }) => Math.round((time + compositionTime - (times[0] as number)) / STEP) - 2),
    order,
  );
  t.true(units.every(({ compositionTime }) => compositionTime >= 0));
  const meter = new TrackMeter((units[0] as MediaUnit).track);
  for (const { track, time, compositionTime, key, data } of units)
    meter.add({ track, dts: Math.round(time), pts: Math.round(time + compositionTime), duration: 0, key, data });
  t.is(meter.read().framerateAvg, 25);
});

test('frames in order without reorder numbers are decoded when they are shown', (t) => {
  const { units, send } = setUp(t);
  for (let i = 0; i < 30; i++) send(i, i < 15 ? 0 : 15);
  t.is(units.length, 30);
  t.true(units.every(({ compositionTime }) => compositionTime === 0));
  t.deepEqual(
    units.map(({ time }) => Math.round(time - (units[0]?.time as number))),
    units.map((_, i) => i * STEP),
  );
});

test('the first picture waits for the second, all else behind it, and not for long', async (t) => {
  const other = setUp(t).lane;
  const audio = (now: number): LaneEvent => ({ lane: other, what: 'damage', data: Buffer.alloc(0), timestamp: 0, now });
  const waits = setUp(t);
  waits.first.push(audio(0));
  waits.send(0, 0);
  for (const now of [10, 20]) waits.first.push(audio(now));
  t.is(waits.units.length, 0);
  waits.send(1, 0);
  t.is(waits.units.length, 2);
  t.deepEqual(waits.passed, [0, 3, 10, 20, 4]);
  waits.first.push(audio(30));
  t.is(waits.passed.at(-1), 30);
  const alone = setUp(t);
  alone.send(0, 0);
  alone.first.push(audio(4));
  t.is(alone.units.length, 0);
  await until('it is passed without another', () => alone.units.length === 1);
  t.deepEqual(alone.passed, [3, 4]);
  const closed = setUp(t);
  closed.send(0, 0);
  closed.first.close();
  closed.first.push(audio(5));
  t.deepEqual(closed.passed, [5]);
});

test('a track that declares no B-frames waits for nothing', (t) => {
  const { units, send } = setUp(t, { profile: 66 });
  send(0, 0);
  t.is(units.length, 1);
});
