import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { SourceError } from '../../../../src/playback/byte-source.ts';
import { ClipError } from '../../../../src/playback/clip/error.ts';
import { openFmp4Clip } from '../../../../src/playback/clip/fmp4.ts';
import { Mp4Clip } from '../../../../src/playback/clip/mp4.ts';
import { openMp4, type RecordedTrack } from '../../../../src/playback/clip/recording.ts';
import { firstSampleFrom, loadSamples, SampleCursor } from '../../../../src/playback/clip/samples.ts';
import { Mp4File } from '../../../../src/containers/fmp4/file.ts';
import {
  audioPackets,
  audioTrack,
  cuePacket,
  interleaved,
  subtitleTrack,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';
import { collect, MemoryFile, recordedBytes } from '../../../support/recording/recorded-mp4.ts';
import { seeded } from '../../codecs/vectors.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();

/** Frames of odd durations, sizes, order and key frames. */
function odd(seed: number): Packet[] {
  const random = seeded(seed);
  let dts = 900_000;
  const video = videoPackets(VIDEO, { to: 20 }).map((packet, index): Packet => {
    dts += random() < 0.5 ? 3000 : 2000 + Math.floor(random() * 3000);
    const key = index === 0 || random() < 0.03;
    return { ...packet, dts, pts: dts + 3000 * Math.floor(random() * 3), key, data: Buffer.alloc(1 + random() * 300) };
  });
  return interleaved(video, audioPackets(AUDIO, { from: 10, to: 30 }));
}

test('a recording is indexed with the times of its packets', async (t) => {
  const packets = interleaved(
    videoPackets(VIDEO, { from: 10, to: 20, gop: 50 }).map((one) => ({ ...one, pts: one.dts + 6000 })),
    audioPackets(AUDIO, { from: 9.9, to: 20 }),
  );
  const { tracks, leader, begin, end } = await openMp4(new MemoryFile(recordedBytes([VIDEO, AUDIO], packets)));
  t.deepEqual(
    tracks.map(({ type, timescale }) => [type, timescale]),
    [
      ['video', 90_000],
      ['audio', 48_000],
    ],
  );
  t.is(leader, tracks[0] as RecordedTrack);
  t.is(leader.lead, 6000);
  t.deepEqual([...leader.marks.sample], [0, 50, 100, 150, 200, 250]);
  t.deepEqual([...leader.marks.dts], [0, 150_000, 300_000, 450_000, 600_000, 750_000]);
  const late = 10 - Math.ceil((9.9 * 48_000) / 1024) * (1024 / 48_000);
  t.true(Math.abs(begin - late - 6000 / 90_000) < 0.001);
  t.true(Math.abs(end - begin - 10) < 0.001);
  t.deepEqual(leader.description, { type: 'video', codec: 'H264', config: VIDEO.config, width: 640, height: 360 });
});

test('a recording may have many labels of subtitles, and few tracks of media', async (t) => {
  const labels = (count: number) =>
    Array.from({ length: count }, (_, index) => subtitleTrack({ id: 768 + index, publicName: `Label ${index}` }));
  const record = async (tracks: readonly (typeof VIDEO | ReturnType<typeof subtitleTrack>)[]) => {
    const packets = tracks.map((track) =>
      track.type === 'video' ? videoPackets(track, { to: 1, gop: 30 }) : [cuePacket(track, 500, 'text')],
    );
    return await openMp4(new MemoryFile(recordedBytes(tracks, interleaved(...packets))));
  };
  const { tracks } = await record([VIDEO, ...labels(100)]);
  t.deepEqual(
    tracks.map(({ shown }) => shown?.label),
    [undefined, ...labels(100).map(({ publicName }) => publicName)],
  );
  const videos = Array.from({ length: 17 }, (_, id) => ({ ...VIDEO, id }));
  const fault = { instanceOf: ClipError, message: /it has more than 16 tracks of media/ };
  await t.throwsAsync(record(videos), fault);
  await t.throwsAsync(record([VIDEO, ...labels(300)]), { instanceOf: ClipError, message: /it has 301 tracks/ });
});

test('any samples of a recording are found with their times, sizes and places', async (t) => {
  for (let seed = 1; seed <= 5; seed++) {
    const packets = odd(seed);
    const source = new MemoryFile(recordedBytes([VIDEO, AUDIO], packets));
    const { tracks } = await openMp4(source);
    const random = seeded(seed + 100);
    for (const track of tracks) {
      const own = packets.filter(({ track: { id } }) => id === track.id - 1);
      const start = own[0]?.dts as number;
      t.is(track.samples, own.length);
      for (let round = 0; round < 60; round++) {
        const from = Math.floor(random() * own.length);
        const to = Math.min(own.length, from + Math.floor(random() * (round % 2 === 0 ? 10 : own.length)));
        const samples = await loadSamples(track, from, to);
        t.is(samples.count, to - from);
        const cursor = new SampleCursor(samples);
        for (const packet of own.slice(from, to)) {
          t.true(cursor.next());
          t.is(cursor.dts, packet.dts - start);
          t.is(cursor.offset, packet.pts - packet.dts);
          t.is(cursor.key, packet.key as boolean);
          t.true(packet.data.equals(source.bytes.subarray(cursor.at, cursor.at + cursor.size)));
        }
        t.false(cursor.next());
        const ticks = Math.floor(random() * track.duration * 1.1) - 1000;
        const found = own.findIndex(({ dts }) => dts - start >= ticks);
        t.is(await firstSampleFrom(track, ticks), found < 0 ? own.length : found);
      }
    }
  }
});

test('a recording that was not finished, or has no frames, is refused with a reason', async (t) => {
  const file = new Mp4File([VIDEO, AUDIO]);
  const pieces = odd(1).flatMap((packet) => file.write(packet));
  const fault = async (bytes: Buffer) =>
    (await t.throwsAsync(openMp4(new MemoryFile(bytes)), { instanceOf: ClipError }))?.fault;
  t.is(await fault(Buffer.concat(pieces)), 'unsupported');
  t.is(await fault(Buffer.alloc(0)), 'damaged');
  t.is(await fault(Buffer.from('<html>not an MP4 file, but long enough for a head</html>')), 'damaged');
});

const SPAN = { start: 3000, duration: 4000 };

/** Opens and reads clips of bytes. @returns whether it worked */
async function tries(bytes: Buffer): Promise<boolean> {
  const source = new MemoryFile(bytes);
  try {
    const recording = await openMp4(source);
    const files = [{ recording, id: 'a', startTime: 0 }];
    const clip = await Mp4Clip.open(files, SPAN);
    await collect(clip.read(0, clip.size));
    await collect((await openFmp4Clip(files, SPAN)).pieces);
    return true;
  } catch (error) {
    if (error instanceof ClipError || error instanceof SourceError) return false;
    throw error;
  }
}

test('a recording that is cut off anywhere is refused', async (t) => {
  const bytes = recordedBytes([VIDEO, AUDIO], odd(2));
  t.true(await tries(bytes));
  const movie = bytes.lastIndexOf('moov');
  const random = seeded(9);
  for (let round = 0; round < 200; round++) {
    const from = round % 2 === 0 ? movie : 0;
    t.false(await tries(bytes.subarray(0, Math.floor(from + random() * (bytes.length - from)))));
  }
});

test('a damaged index costs a clear error, or a clip of what it says', async (t) => {
  const bytes = recordedBytes([VIDEO, AUDIO], odd(3));
  const movie = bytes.lastIndexOf('moov') - 4;
  const random = seeded(10);
  let refused = 0;
  for (let round = 0; round < 600; round++) {
    const bad = Buffer.from(bytes);
    for (let i = 0; i <= round % 3; i++) {
      const at = Math.floor(movie + random() * (bytes.length - movie));
      if (random() < 0.5) bad[at] = Math.floor(random() * 256);
      else
        bad.writeUInt32BE(
          random() < 0.5 ? 0xffff_ffff : Math.floor(random() * 2 ** 32),
          Math.min(at, bytes.length - 4),
        );
    }
    if (!(await tries(bad))) refused++;
  }
  t.true(refused > 100, `${refused}`);
});

test('an index of half an hour is small in memory', async (t) => {
  const packets = interleaved(
    videoPackets(VIDEO, { to: 1800, framerate: 60, gop: 60, bytes: 1 }),
    audioPackets(AUDIO, { to: 1800, bytes: 1 }),
  );
  const { tracks } = await openMp4(new MemoryFile(recordedBytes([VIDEO, AUDIO], packets)));
  const bytes = tracks.reduce((sum, track) => sum + marksBytes(track), 0);
  t.true(bytes < 400_000, `${bytes}`);
});

function marksBytes({ marks }: RecordedTrack): number {
  const columns = [marks, marks.durations, marks.offsets ?? {}, marks.chunks].flatMap((one) => Object.values(one));
  return columns.reduce((sum: number, one) => sum + (ArrayBuffer.isView(one) ? one.byteLength : 0), 0);
}
