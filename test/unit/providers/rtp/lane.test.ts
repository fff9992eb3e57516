import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { joinNals } from '../../../../src/codecs/nal.ts';
import { FaultLog } from '../../../../src/log/log.ts';
import { RtpClock } from '../../../../src/protocols/rtp/receive/clock.ts';
import type { RtpPacket } from '../../../../src/protocols/rtp/receive/packet.ts';
import { AudioIntake } from '../../../../src/providers/intake/audio-intake.ts';
import { VideoIntake } from '../../../../src/providers/intake/video-intake.ts';
import { GapTimer, type Waiting } from '../../../../src/providers/rtp/gap-timer.ts';
import { RtpLane } from '../../../../src/providers/rtp/lane.ts';
import { until } from '../../../support/time/until.ts';

const RATE = 48_000;

interface Stream {
  /** Of what it brings, in seconds. */
  readonly times: number[];
  readonly lost: number[];
  send(sequence: number, seconds: number, now: number): void;
  report(ssrc: number, ntpMs: number, seconds: number): void;
}

/** Two streams of sound; the second leads. */
function setUp(t: ExecutionContext): [Stream, Stream] {
  const clock = new RtpClock(true);
  const faults = new FaultLog(pino({ level: 'silent' }));
  t.teardown(() => faults.close());
  return [false, true].map((leads, id) => {
    const times: number[] = [];
    const lost: number[] = [];
    const lane: RtpLane = new RtpLane({
      kind: 'audio',
      format: { encoding: 'OPUS', clockRate: RATE, parameters: {} },
      waitMs: 0,
      faults,
      source: new AudioIntake({ id, codec: 'OPUS' }),
      clock: clock.track(RATE, leads),
      onEvent: (event) => {
        const unit = lane.unit(event);
        if (unit !== undefined) times.push(Math.round(unit.time / 900) / 100);
      },
      onLost: (packets) => lost.push(packets),
    });
    return {
      times,
      lost,
      send: (sequence: number, seconds: number, now: number) => {
        const packet: RtpPacket = {
          payloadType: 96,
          marker: true,
          sequence,
          timestamp: seconds * RATE,
          ssrc: id,
          payload: Buffer.of(0xfc, 1, 2),
        };
        lane.push(packet, now);
      },
      report: (ssrc: number, ntpMs: number, seconds: number) =>
        lane.report({ ssrc, ntpMs, compactNtp: 0, rtpTime: seconds * RATE }),
    };
  }) as [Stream, Stream];
}

test('sender reports of a track are believed, also when they come before its packets', (t) => {
  const [one, other] = setUp(t);
  other.report(1, 10_000, 100);
  other.send(0, 100, 0);
  one.report(0, 11_000, 200);
  one.send(0, 200, 0);
  t.deepEqual([other.times, one.times], [[0], [1]]);
});

test('a report of another source moves nothing, in front of the stream or behind', (t) => {
  const [one, other] = setUp(t);
  other.send(0, 100, 0);
  other.report(1, 10_000, 100);
  one.report(7, 11_000, 200);
  one.send(0, 200, 0);
  one.report(7, 14_000, 200);
  for (let i = 1; i < 100; i++) one.send(i, 200 + i / 50, i * 20);
  t.is(one.times[0], 0);
  t.is(one.times.at(-1), 1.98);
});

test('packets that never came are reported', (t) => {
  const [one] = setUp(t);
  for (const sequence of [65_534, 65_535, 3, 4]) one.send(sequence, sequence, 0);
  t.deepEqual(one.lost, [3]);
});

test('frames are shown at their times, also where nothing declares that they are reordered', (t) => {
  const shown: number[] = [];
  const faults = new FaultLog(pino({ level: 'silent' }));
  t.teardown(() => faults.close());
  const lane: RtpLane = new RtpLane({
    kind: 'video',
    format: { encoding: 'VP8', clockRate: 90_000, parameters: {} },
    waitMs: 0,
    faults,
    source: new VideoIntake({ id: 0, codec: 'VP8' }),
    clock: new RtpClock(true).track(90_000, true),
    onEvent: (event) => {
      const unit = lane.unit(event);
      if (unit !== undefined) shown.push(Math.round((unit.time + unit.compositionTime) / 3000));
    },
    onLost: () => {},
  });
  const [key, other] = [Buffer.from('101000009d012a80026801', 'hex'), Buffer.of(0x10, 0x11, 0, 0)];
  for (const [i, frame] of [0, 3, 1, 2, 6, 4, 5].entries()) {
    const payload = i === 0 ? key : other;
    lane.push({ payloadType: 96, marker: true, sequence: i, timestamp: frame * 3000, ssrc: 1, payload }, i * 33);
  }
  t.deepEqual(shown, [0, 3, 1, 2, 6, 4, 5]);
});

test('a first frame of too many units does not throw, whatever looks into it', (t) => {
  const faults = new FaultLog(pino({ level: 'silent' }));
  t.teardown(() => faults.close());
  const lane: RtpLane = new RtpLane({
    kind: 'video',
    format: { encoding: 'H264', clockRate: 90_000, parameters: {} },
    waitMs: 0,
    faults,
    source: new VideoIntake({ id: 0, codec: 'H264' }),
    clock: new RtpClock(true).track(90_000, true),
    onEvent: () => {},
    onLost: () => {},
  });
  const data = joinNals([Buffer.alloc(3 * 8193, Buffer.of(0, 0, 1))]);
  t.false(lane.looksAhead(data));
  t.is(lane.unit({ lane, what: 'frame', data, timestamp: 0, now: 0 }), undefined);
});

test('the gap timer drives what waits, as long as anything does', async (t) => {
  const now = performance.now();
  const stream = (deadlines: number[]): Waiting & { ticks: number } => ({
    ticks: 0,
    get deadline() {
      return deadlines[0];
    },
    tick(late) {
      this.ticks++;
      while ((deadlines[0] ?? Infinity) <= late) deadlines.shift();
    },
  });
  const [one, other, closed] = [stream([now + 5, now + 30]), stream([now + 15]), stream([now + 5])];
  const timer = new GapTimer([one, other]);
  timer.heard(one, now);
  timer.heard(other, now);
  const none = new GapTimer([closed]);
  none.heard(closed, now);
  none.close();
  none.heard(closed, now);
  await until('nothing waits', () => one.deadline === undefined && other.deadline === undefined);
  t.true(one.ticks >= 2);
  t.is(closed.ticks, 0);
});
