import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { Pacer } from '../../../../src/providers/hls-pull/pacer.ts';
import { until } from '../../../support/time/until.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

const TRACK = videoTrack({ timebase: { num: 1, den: 1000 } });
const packet = (dts: number, bytes = 1): Packet =>
  ({ track: TRACK, dts, pts: dts, duration: 0, key: false, data: Buffer.alloc(bytes) }) as Packet;

const AUDIO = audioTrack({ timebase: { num: 1, den: 1000 } });
const audio = (dts: number): Packet => ({ ...packet(dts), track: AUDIO });

function pacer(leadSeconds: number) {
  const passed: (number | string)[] = [];
  const sink = {
    setTracks: () => void passed.push('tracks'),
    write: ({ dts }: Packet) => void passed.push(dts),
  };
  return { passed, paced: new Pacer({ sink, leadSeconds, isLive: true }) };
}

test('packets are passed on in their order, when they are due', async (t) => {
  const { passed, paced } = pacer(100);
  paced.setTracks([TRACK]);
  for (const dts of [5000, 5020, 5010, 5100]) paced.write(packet(dts));
  paced.setTracks([TRACK]);
  await paced.drained();
  t.deepEqual(passed, ['tracks', 5000, 5010, 5020, 5100, 'tracks']);
  // late ones pass at once, and those of far in the future wait
  paced.write(packet(5101));
  paced.write(packet(5102));
  await paced.drained();
  paced.write(packet(1_000_000));
  const drained = paced.drained();
  t.deepEqual(passed.slice(6), [5101, 5102]);
  paced.close();
  await drained;
  paced.write(packet(1_000_001));
  t.deepEqual(passed.slice(6), [5101, 5102]);
});

test('no more than some seconds, and some bytes, are wanted', async (t) => {
  const { passed, paced } = pacer(1);
  await paced.room();
  paced.write(packet(0));
  paced.write(packet(1100));
  await paced.room();
  t.is(passed[0], 0);
  await paced.drained();
  t.deepEqual(passed, [0, 1100]);
  // a time of another clock is no reason to wait
  paced.write(packet(10_000_000));
  await paced.drained();
  paced.write(packet(10_000_100, 70 * 1024 * 1024));
  await paced.room();
  t.deepEqual(passed, [0, 1100, 10_000_000, 10_000_100]);
  paced.close();
});

test('a kind that is there does not keep the other kinds from being read', async (t) => {
  const { paced } = pacer(1);
  paced.write(packet(0));
  paced.write(packet(100_000));
  await paced.room('audio');
  let wanted = false;
  const room = paced.room('video').then(() => (wanted = true));
  paced.write(audio(500));
  await paced.room('audio');
  t.false(wanted);
  paced.close();
  await room;
});

test('all wait for a kind that is late, unless it is too late', async (t) => {
  const { passed, paced } = pacer(10);
  for (const dts of [20_000, 25_000]) paced.write(packet(dts));
  await until('the first is passed on', () => passed.length === 1);
  // late by three seconds: the pace goes back, and so 17,400 is not due yet
  paced.write(audio(17_000));
  paced.write(packet(17_400));
  await until('the late one is passed on', () => passed.length > 1);
  t.deepEqual(passed, [20_000, 17_000]);
  paced.write(audio(1000));
  await until('it is passed on', () => passed.includes(1000));
  t.deepEqual(passed.slice(0, 3), [20_000, 17_000, 1000]);
  paced.close();
});
