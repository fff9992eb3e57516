import { encodeTs, PATTERN, TONE, X264 } from '../support/mpegts/ts-media.ts';
import { mutate } from './mutate.ts';
import type { Random } from './random.ts';

const PACKET = 188;
const PER_DATAGRAM = 7;
const DATAGRAMS = 40;
const MP2T = 33;

const STREAMS = await Promise.all(
  [
    ['-c:a', 'aac'],
    ['-c:a', 'libopus'],
    ['-c:a', 'mp2'],
  ].map((sound) => encodeTs([...PATTERN, ...TONE, ...X264, ...sound])),
);

/** A transport stream, whole or broken. */
export function brokenTs(random: Random): Buffer {
  const stream = random.pick(STREAMS);
  const size = DATAGRAMS * PER_DATAGRAM * PACKET;
  const start = random.chance(0.7)
    ? 0
    : PACKET * random.below(Math.max(1, Math.floor((stream.length - size) / PACKET)));
  const bytes = stream.subarray(start, start + size);
  return random.chance(0.2) ? bytes : mutate(bytes, random, random.pick(STREAMS), random.chance(0.5) ? PACKET : 0);
}

/** The same in datagrams, as it is or in RTP (RFC 2250 section 2). */
export function tsDatagrams(random: Random): Buffer[] {
  const bytes = brokenTs(random);
  const size = random.pick([PACKET, PER_DATAGRAM * PACKET, PER_DATAGRAM * PACKET, 1 + random.below(3000)]);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
  if (random.chance(0.5)) return pieces.slice(0, DATAGRAMS);
  const first = random.below(65_536);
  return pieces.slice(0, DATAGRAMS).map((piece, i) => {
    const head = Buffer.alloc(12);
    head.set([random.chance(0.98) ? 0x80 : random.below(256), MP2T]);
    head.writeUInt16BE((first + (random.chance(0.95) ? i : random.below(65_536))) % 65_536, 2);
    head.writeUInt32BE(i * 3000, 4);
    return Buffer.concat([head, piece]);
  });
}
