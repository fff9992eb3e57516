import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { Departure } from '../../../../src/channels/sources/departure.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { MediaTrack } from '../../../../src/core/track.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const packet = (track: MediaTrack, key = track.type !== 'video'): Packet => ({
  ...{ track, key, dts: 0, pts: 0, duration: 1 },
  data: Buffer.alloc(1),
});

function open(t: ExecutionContext) {
  virtualTime(t);
  const stop = new AbortController();
  const leaves: { listener?: ((leave: () => void) => void) | undefined } = {};
  const handsOver = (listener: ((leave: () => void) => void) | undefined): void => {
    leaves.listener = listener;
  };
  const left: Packet[] = [];
  const departure = new Departure({ signal: stop.signal, handsOver }, (next) => left.push(next));
  t.teardown(() => departure.close());
  return {
    leaves,
    left,
    stop,
    passes: (one: Packet) => departure.passes(one),
    handOver: () => leaves.listener?.(() => stop.abort()),
  };
}

test('a stream that is handed over goes on up to its next key frame, which is not written', (t) => {
  const { passes, handOver, left } = open(t);
  for (const one of [packet(VIDEO, true), packet(AUDIO), packet(VIDEO)]) t.true(passes(one));
  handOver();
  for (const one of [packet(AUDIO), packet(VIDEO)]) t.true(passes(one));
  const next = packet(VIDEO, true);
  for (const one of [next, packet(AUDIO), packet(VIDEO), packet(VIDEO, true)]) t.false(passes(one));
  t.deepEqual(left, [next]);
});

test('a stream without video ends with its next packet', (t) => {
  const { passes, handOver } = open(t);
  t.true(passes(packet(AUDIO)));
  handOver();
  t.false(passes(packet(AUDIO)));
});

test('a stream is interrupted only while it plays, and a key frame that does not come is not waited for', async (t) => {
  const { passes, leaves, handOver, stop } = open(t);
  t.is(leaves.listener, undefined);
  t.true(passes(packet(VIDEO, true)));
  t.truthy(leaves.listener);
  await delay(3000);
  t.is(leaves.listener, undefined);
  t.true(passes(packet(VIDEO, true)));
  handOver();
  for (let n = 0; n < 9; n++) {
    await delay(1000);
    t.true(passes(packet(VIDEO)));
  }
  await delay(3000);
  t.true(stop.signal.aborted);
});

test('a stream that falls silent while it is handed over ends', async (t) => {
  const { passes, handOver, stop } = open(t);
  passes(packet(VIDEO, true));
  handOver();
  await delay(3000);
  t.true(stop.signal.aborted);
});

test('a hand-over that is taken back leaves the stream as it is', (t) => {
  const { passes, leaves } = open(t);
  passes(packet(VIDEO, true));
  leaves.listener?.(() => {});
  for (const one of [packet(VIDEO), packet(VIDEO, true), packet(AUDIO)]) t.true(passes(one));
});

test('the hand-over after one that was taken back does not wait for ever either', async (t) => {
  const { passes, leaves, handOver, stop } = open(t);
  passes(packet(VIDEO, true));
  leaves.listener?.(() => {});
  handOver();
  for (let n = 0; n < 20; n++) {
    await delay(1000);
    passes(packet(VIDEO));
  }
  t.true(stop.signal.aborted);
});
