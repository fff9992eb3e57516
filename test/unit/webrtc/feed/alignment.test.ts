import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { Alignment } from '../../../../src/webrtc/feed/alignment.ts';
import { videoTrack } from '../../../support/media/packets.ts';

const FRAME_MS = 40;
const TRACK = videoTrack({ timebase: { num: 1, den: 1000 } });

interface Sent {
  readonly layer: number;
  /** Media time in milliseconds. */
  readonly time: number;
  readonly at: number;
  readonly lateMs: number;
}

/** Time that the test moves: what happens in it happens in order, and at once. */
class Stage {
  readonly sent: Sent[] = [];
  readonly alignment: Alignment;
  readonly #events: { readonly at: number; readonly layer: number; readonly time: number }[] = [];

  constructor(t: ExecutionContext, layers: number) {
    t.teardown(() => this.close());
    mock.timers.enable({ apis: ['setTimeout', 'setImmediate', 'Date'], now: 1_000_000 });
    this.alignment = new Alignment(layers, (layer, { dts }, lateMs) => {
      this.sent.push({ layer, time: dts, at: Date.now() - 1_000_000, lateMs });
    });
  }

  /** Frames of a layer from one media time to another, each so long after its time. */
  frames(layer: number, from: number, to: number, lag: (time: number) => number): void {
    for (let time = from; time < to; time += FRAME_MS) this.#events.push({ at: time + lag(time), layer, time });
  }

  play(until: number): void {
    this.#events.sort((one, other) => one.at - other.at);
    for (let now = Date.now() - 1_000_000; now < until; now++) {
      while ((this.#events[0]?.at ?? Infinity) <= now) {
        const { layer, time } = this.#events.shift() as { layer: number; time: number };
        this.alignment.take(layer, {
          track: TRACK,
          dts: time,
          pts: time,
          duration: 0,
          key: false,
          data: Buffer.alloc(0),
        } as Packet);
      }
      mock.timers.tick(1);
    }
  }

  /** Time goes on, and what comes is not read until later. */
  stall(ms: number): void {
    mock.timers.setTime(Date.now() + ms);
  }

  /** What left from a media time on. */
  since(time: number): Sent[] {
    return this.sent.filter((one) => one.time >= time);
  }

  close(): void {
    this.alignment.close();
    mock.timers.reset();
  }
}

const inOrder = (sent: readonly Sent[]) =>
  sent.slice(1).every(({ time, layer }, index) => {
    const before = sent[index] as Sent;
    return time > before.time || (time === before.time && layer > before.layer);
  });

test.serial('layers that come late and unevenly leave together, the lowest first', (t) => {
  const stage = new Stage(t, 3);
  stage.frames(2, 0, 6000, () => 0);
  stage.frames(1, 0, 6000, (time) => 60 + (time % 3));
  stage.frames(0, 0, 6000, (time) => 100 + (time % 7));
  stage.play(7000);
  const settled = stage.since(2000);
  t.is(settled.length, 3 * 100);
  t.true(inOrder(settled));
  t.true(settled.every(({ at, time }) => at - time >= 100 && at - time <= 115));
  t.true(settled.every(({ lateMs }) => lateMs === 0));
});

test.serial('a layer that dies, and one that is made again and catches up, hold up no other', (t) => {
  const stage = new Stage(t, 2);
  stage.frames(1, 0, 20_000, () => 0);
  stage.frames(0, 0, 6000, () => 100);
  // what was missed comes in a burst, at five times the pace
  stage.frames(0, 8000, 20_000, (time) => Math.max(100, 2000 - (time - 8000) * 0.8));
  stage.play(21_000);
  const source = stage.since(2000).filter(({ layer }) => layer === 1);
  const delays = source.map(({ at, time }) => at - time);
  t.is(source.length, 450);
  t.true(Math.min(...delays) >= 95);
  const steps = delays.slice(1).map((delay, index) => delay - (delays[index] as number));
  t.true(
    steps.every((step) => Math.abs(step) < FRAME_MS / 2),
    `${Math.max(...steps)}`,
  );
  t.true(inOrder(stage.since(16_000)));
});

test.serial('a layer that begins with what it missed is as late as it is when it has caught up', (t) => {
  const stage = new Stage(t, 2);
  stage.frames(1, 0, 14_000, () => 0);
  stage.frames(0, 2000, 14_000, (time) => Math.max(100, 2000 - (time - 2000) * 0.8));
  stage.play(15_000);
  const settled = stage.since(9000);
  t.is(settled.length, 2 * 125);
  t.true(inOrder(settled));
  t.true(settled.every(({ at, time, lateMs }) => at - time <= 150 && lateMs === 0));
});

test.serial('layers are in step again after the source has stalled', (t) => {
  const stage = new Stage(t, 2);
  const stall = (time: number) => (time < 4000 ? 0 : 1500);
  stage.frames(1, 0, 12_000, stall);
  stage.frames(0, 0, 12_000, (time) => stall(time) + 80);
  stage.play(15_000);
  t.true(inOrder(stage.since(9000)));
  const source = stage.since(9000).filter(({ layer }) => layer === 1);
  t.true(source.every(({ at, time }) => at - time - 1500 >= 80 && at - time - 1500 < 100));
});

test.serial('packets that were not read while this process stood still leave in order', (t) => {
  const stage = new Stage(t, 2);
  stage.frames(1, 0, 8000, () => 0);
  stage.frames(0, 0, 8000, () => 100);
  stage.play(4000);
  stage.stall(180);
  stage.play(9000);
  t.true(inOrder(stage.since(2000)));
});

test.serial('a layer far behind is not waited for, and its lag is reported', (t) => {
  const stage = new Stage(t, 2);
  stage.frames(1, 0, 8000, () => 0);
  stage.frames(0, 0, 8000, () => 1000);
  stage.play(10_000);
  const settled = stage.since(4000);
  const of = (layer: number) => settled.filter((sent) => sent.layer === layer);
  t.true(of(1).every(({ at, time, lateMs }) => at - time <= 250 && lateMs === 0));
  t.true(of(0).every(({ at, time, lateMs }) => at - time <= 1001 && Math.abs(lateMs - 750) < 10));
});

test.serial('a jump of the source is held up no longer than anything else', (t) => {
  const stage = new Stage(t, 2);
  stage.frames(1, 0, 4000, () => 0);
  stage.frames(0, 0, 4000, () => 50);
  stage.frames(1, 100_000, 104_000, () => -96_000);
  stage.frames(0, 100_000, 104_000, () => -95_950);
  stage.play(10_000);
  const after = stage.since(100_000);
  t.is(after.length, 200);
  t.true(after.every(({ at, time }) => at - (time - 96_000) <= 250));
  t.true(inOrder(stage.since(102_000)));
});
