import test from 'ava';
import { Mp4File } from '../../../../src/containers/fmp4/file.ts';
import { mendMp4 } from '../../../../src/containers/fmp4/mend.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import { parseBoxes } from '../../../support/media/boxes.ts';
import { indexOf } from '../../../support/media/mp4-index.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { seeded } from '../../codecs/vectors.ts';

const TRACKS = [videoTrack(), audioTrack()] as const;
/** Pictures are shown later than decoded, and the audio begins later. */
const PACKETS = interleaved(
  videoPackets(TRACKS[0], { from: 10, to: 14, gop: 45 }).map((packet, index) => ({
    ...packet,
    pts: packet.dts + 3000 * (index % 3),
  })),
  audioPackets(TRACKS[1], { from: 10.1, to: 14 }),
);

/** A file as it is on the disk before its end, and what its end adds. */
function written(packets: readonly Packet[] = PACKETS) {
  const file = new Mp4File(TRACKS);
  const pieces = packets.flatMap((packet) => file.write(packet));
  const { tail, patches } = file.end();
  const media = Buffer.concat([...pieces, ...tail.slice(0, -1)]);
  const whole = Buffer.concat([media, tail.at(-1) as Buffer]);
  for (const { at, data } of patches) data.copy(whole, at);
  return { media, whole };
}

async function mended(bytes: Buffer): Promise<Buffer> {
  const read = (at: number, count: number) => Promise.resolve(bytes.subarray(at, at + count));
  const { whole, tail, patches } = await mendMp4(read, bytes.length);
  const out = Buffer.concat([bytes.subarray(0, whole), ...tail]);
  for (const { at, data } of patches) data.copy(out, at);
  return out;
}

test('a file that was interrupted becomes, byte for byte, what its end would have made of it', async (t) => {
  const { media, whole } = written();
  t.deepEqual(await mended(media), whole);
  t.deepEqual(await mended(Buffer.concat([media, media.subarray(0, 50)])), whole);
});

test('an MP4 file whose video is reordered and begins later than its audio is mended alike', async (t) => {
  const video = videoPackets(TRACKS[0], { from: 10.5, to: 14, gop: 45 });
  const { media, whole } = written(
    interleaved(
      video.map((packet, index) => ({ ...packet, pts: packet.dts + (index % 2 === 0 ? 6000 : 3000) })),
      audioPackets(TRACKS[1], { from: 10, to: 14 }),
    ),
  );
  t.deepEqual(await mended(media), whole);
});

test('an MP4 file whose index is not in place yet gets it again, and a whole one stays as it is', async (t) => {
  const { media, whole } = written();
  t.deepEqual(await mended(Buffer.concat([media, whole.subarray(media.length)])), whole);
  t.deepEqual(await mended(Buffer.concat([media, whole.subarray(media.length, -10)])), whole);
  t.deepEqual(await mended(whole), whole);
});

test('wherever a file was cut off, all of its whole fragments are in the index, and nothing else', async (t) => {
  const { media } = written();
  const fragments = parseBoxes(media).filter(({ type }) => type === 'mdat').length;
  t.true(fragments > 4);
  const seen = new Set<number>();
  for (const cut of [...Array(Math.ceil(media.length / 97)).keys()].map((n) => n * 97).concat(media.length)) {
    const bytes = await mended(media.subarray(0, cut));
    if (bytes.length === 0) {
      seen.add(0);
      continue;
    }
    const head = bytes.readUInt32BE(0);
    const movieAt = head + Number(bytes.readBigUInt64BE(head + 8));
    const tracks = indexOf(bytes.subarray(movieAt + 8));
    seen.add(tracks.reduce((sum, { count }) => sum + count, 0));
    for (const [index, { count, sizes, places }] of tracks.entries()) {
      const own = PACKETS.filter(({ track }) => track === TRACKS[index]);
      for (let i = 0; i < count; i++) {
        const at = places[i] as number;
        t.true(own[i]?.data.equals(bytes.subarray(at, at + (sizes[i] as number))));
      }
    }
  }
  t.is(seen.size, fragments + 1);
});

test('damaged bytes cost no more than what follows them', async (t) => {
  const { media, whole } = written();
  const random = seeded(7);
  for (let i = 0; i < 500; i++) {
    const bytes = Buffer.from(media);
    bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    const out = await mended(bytes);
    t.true(out.length <= whole.length + 200);
  }
});

test('a fragmented file of another writer is cut to its whole fragments and nothing else', async (t) => {
  const { media } = written();
  const place = media.indexOf('free') - 4;
  const foreign = Buffer.concat([media.subarray(0, place), media.subarray(place + 16)]);
  t.deepEqual(await mended(Buffer.concat([foreign, Buffer.alloc(5)])), foreign);
  t.deepEqual(await mended(Buffer.alloc(0)), Buffer.alloc(0));
});
