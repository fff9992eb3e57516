import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { Pacer } from '../../../../src/providers/hls-pull/pacer.ts';
import { videoTrack } from '../../../support/media/packets.ts';

const TRACK = videoTrack({ timebase: { num: 1, den: 1000 } });
const packet = (dts: number, bytes = 1): Packet =>
  ({ track: TRACK, dts, pts: dts, duration: 0, key: false, data: Buffer.alloc(bytes) }) as Packet;

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
