import test from 'ava';
import { PacketReader } from '../../../../src/containers/mpegts/packet-reader.ts';
import { tsPacket } from '../../../support/mpegts/ts-build.ts';
import { seeded } from '../../codecs/vectors.ts';

const packets = Array.from({ length: 30 }, (_, i) => tsPacket({ pid: 256, counter: i }, Buffer.alloc(184, i)));

/** Packets that are found, and how often there was something else. */
function read(data: Buffer, chunk = data.length): { found: Buffer[]; garbage: number } {
  const found: Buffer[] = [];
  let garbage = 0;
  const reader = new PacketReader({
    packet: (bytes, at) => found.push(Buffer.from(bytes.subarray(at, at + 188))),
    garbage: () => garbage++,
  });
  for (let at = 0; at < data.length; at += chunk) {
    // memory that is used again, as that of a socket may be
    const portion = Buffer.from(data.subarray(at, at + chunk));
    reader.push(portion);
    portion.fill(0x47);
  }
  return { found, garbage };
}

test('packets come out of any portions', (t) => {
  const data = Buffer.concat(packets);
  for (const chunk of [1, 7, 100, 187, 188, 189, 376, 1316, 4096])
    t.deepEqual(read(data, chunk), { found: packets, garbage: 0 }, `${chunk}`);
});

test('packets with a time in front, and with correction bytes behind', (t) => {
  const timed = Buffer.concat(packets.flatMap((packet) => [Buffer.of(1, 2, 3, 4), packet]));
  const corrected = Buffer.concat(packets.flatMap((packet) => [packet, Buffer.alloc(16, 9)]));
  for (const chunk of [1, 100, 192, 204, 1344, 1428]) {
    t.deepEqual(read(timed, chunk).found, packets);
    t.deepEqual(read(corrected, chunk).found, packets);
  }
});

test('packets are found again behind other bytes', (t) => {
  const random = seeded(47);
  const noise = Buffer.from(Array.from({ length: 500 }, () => Math.floor(random() * 256)));
  const data = Buffer.concat([
    noise.subarray(0, 77),
    ...packets.slice(0, 10),
    noise,
    ...packets.slice(10, 20),
    noise.subarray(0, 1),
    ...packets.slice(20),
  ]);
  for (const chunk of [1, 50, 188, 1316, data.length]) {
    const { found, garbage } = read(data, chunk);
    t.deepEqual(found, packets, `${chunk}`);
    t.true(garbage >= 2);
  }
});

test('bytes without packets, and too few packets to be sure of, give none', (t) => {
  t.deepEqual(read(Buffer.alloc(5000, 1), 188).found, []);
  t.deepEqual(read(Buffer.concat(packets.slice(0, 2)), 188).found, []);
  t.deepEqual(read(Buffer.concat(packets.slice(0, 3)), 188).found, packets.slice(0, 3));
});
