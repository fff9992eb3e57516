import test from 'ava';
import { TsMuxer } from '../../../../src/containers/mpegts/muxer.ts';
import { PROGRAM } from '../../../../src/containers/mpegts/section-writer.ts';
import { PID } from '../../../../src/containers/mpegts/stream-types.ts';
import { pidOf } from '../../../../src/containers/mpegts/transport-packet.ts';
import { wholeTs } from '../../../../src/containers/mpegts/whole.ts';
import {
  audioPackets,
  audioTrack,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../../support/media/packets.ts';

const TRACKS = [videoTrack(), audioTrack()] as const;

function whole(bytes: Buffer, block?: Buffer): Promise<number> {
  const all = block === undefined ? bytes : Buffer.concat([bytes, block]);
  return wholeTs((at, count) => Promise.resolve(all.subarray(at, at + count)), all.length);
}

test('wherever a transport stream was cut off, it ends with a whole unit', async (t) => {
  const muxer = new TsMuxer(TRACKS);
  const units = interleaved(
    videoPackets(TRACKS[0], { to: 0.5, bytes: 900 }).map(withNal),
    audioPackets(TRACKS[1], { to: 0.5, bytes: 120 }),
  ).map((packet) => muxer.write(packet));
  const bytes = Buffer.concat(units);
  let end = 0;
  const ends = [0, ...units.map(({ length }) => (end += length))];
  for (let cut = 0; cut <= bytes.length; cut += 47) {
    const at = await whole(bytes.subarray(0, cut));
    // tables in front of a unit are whole, too
    let before = ends.findLast((one) => one <= at) as number;
    while (before < at && new Set<number>([PID.pat, PROGRAM.pid]).has(pidOf(bytes, before))) before += 188;
    t.is(at, before);
    t.true(cut - at < 2 * 188 + Math.max(...units.map(({ length }) => length)));
  }
  t.is(await whole(bytes), bytes.length);
});

test('a frame of many blocks that is cut off is removed entirely', async (t) => {
  const muxer = new TsMuxer(TRACKS);
  const [first, second] = videoPackets(TRACKS[0], { to: 0.1, bytes: 800_000 }).map((packet) =>
    muxer.write(withNal(packet)),
  );
  t.is(await whole(first as Buffer, second?.subarray(0, 188 * 3000)), (first as Buffer).length);
  t.is(await whole(Buffer.alloc(0)), 0);
});
