import test from 'ava';
import type { Packet } from '../../../../src/core/packet.ts';
import { MILLISECONDS } from '../../../../src/core/timebase.ts';
import type { MediaTrack } from '../../../../src/core/track.ts';
import { ClipError } from '../../../../src/playback/clip/error.ts';
import { openFmp4Clip } from '../../../../src/playback/clip/fmp4.ts';
import type { ClipFile } from '../../../../src/playback/clip/joined.ts';
import { Mp4Clip } from '../../../../src/playback/clip/mp4.ts';
import { placedTracks, shownSamples, type PlacedSample } from '../../../support/media/mp4-samples.ts';
import {
  AAC_SSR,
  audioPackets,
  audioTrack,
  AVC_HIGH,
  interleaved,
  videoPackets,
  videoTrack,
} from '../../../support/media/packets.ts';
import { clipFile, collect } from '../../../support/recording/recorded-mp4.ts';
import { seeded } from '../../codecs/vectors.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
/** Presentation times of a hierarchy of B-frames, in frames after their decode times. */
const REORDER = [1, 3, 0, 0];
const FRAME = 3000;
const MS = 1_700_000_000_000;
/** Bytes that are read at once. */
const PIECE = 256 * 1024;

/** Each packet has bytes of its own. */
function unique(packets: readonly Packet[]): Packet[] {
  return packets.map((packet, index) => {
    const data = Buffer.alloc(20 + ((index * 37) % 200), packet.track.id);
    data.writeUInt32BE(index, 4);
    return { ...packet, data };
  });
}

/** Which packets of a stream these are. */
function numbers(packets: readonly { readonly data: Buffer }[] = []): string {
  return packets.map(({ data }) => data.readUInt32BE(4)).join();
}

function reordered(packets: readonly Packet[]): Packet[] {
  return packets.map((packet, index) => ({ ...packet, pts: packet.dts + FRAME * (REORDER[index % 4] as number) }));
}

const STREAMS: Readonly<Record<string, readonly [tracks: readonly MediaTrack[], packets: readonly Packet[]]>> = {
  'H.264 and AAC': [
    [VIDEO, AUDIO],
    interleaved(videoPackets(VIDEO, { from: 10, to: 30, gop: 60 }), audioPackets(AUDIO, { from: 10, to: 30 })),
  ],
  'B-frames, audio later': [
    [VIDEO, AUDIO],
    interleaved(
      reordered(videoPackets(VIDEO, { from: 10, to: 30, gop: 60 })),
      audioPackets(AUDIO, { from: 10.5, to: 29 }),
    ),
  ],
  'video in milliseconds': [
    [{ ...VIDEO, timebase: MILLISECONDS }, AUDIO],
    interleaved(
      videoPackets(VIDEO, { from: 10, to: 30, gop: 30 }).map((packet) => {
        const time = Math.floor(packet.dts / 90);
        return { ...packet, track: { ...VIDEO, timebase: MILLISECONDS }, dts: time, pts: time };
      }),
      audioPackets(AUDIO, { from: 9.98, to: 30 }),
    ),
  ],
  'video only, all key frames': [[VIDEO], videoPackets(VIDEO, { from: 10, to: 20, gop: 1 })],
  'one key frame': [[VIDEO], videoPackets(VIDEO, { to: 15, gop: 10_000 })],
  'audio only': [[AUDIO], audioPackets(AUDIO, { from: 10, to: 30 })],
  'a second audio track, which comes later': [
    [VIDEO, AUDIO, audioTrack({ id: 2, name: 'second' })],
    interleaved(
      videoPackets(VIDEO, { from: 10, to: 30, gop: 60 }),
      audioPackets(AUDIO, { from: 10, to: 30 }),
      audioPackets(audioTrack({ id: 2, name: 'second' }), { from: 18, to: 30 }),
    ),
  ],
};

/** What a clip of a span must show: data of frames by track id. */
function expected(packets: readonly Packet[], tracks: readonly MediaTrack[], start: number, duration: number) {
  const begin = Math.min(...packets.filter(({ track }) => track.id === tracks[0]?.id).map(seconds));
  return tracks.map(({ id }) =>
    packets
      .filter(({ track }) => track.id === id)
      .filter((packet) => seconds(packet) - begin >= start - 1e-6 && seconds(packet) - begin < start + duration - 1e-6)
      .sort((one, other) => one.pts - other.pts),
  );
}

const seconds = ({ pts, track }: Packet): number =>
  (pts * (track as MediaTrack).timebase.num) / (track as MediaTrack).timebase.den;

async function both(files: readonly ClipFile[], start: number, duration: number) {
  const mp4 = await Mp4Clip.open(files, { start, duration });
  const fmp4 = await openFmp4Clip(files, { start, duration });
  return { mp4, fmp4, files: [await collect(mp4.read(0, mp4.size)), await collect(fmp4.pieces)] };
}

for (const [name, [tracks, plain]] of Object.entries(STREAMS))
  test(`clips show exactly the frames of their time, begun by a key frame: ${name}`, async (t) => {
    const packets = unique(plain);
    const file = await clipFile(tracks, packets, MS);
    const random = seeded(11);
    const length = file.recording.end - file.recording.begin;
    for (let round = 0; round < 15; round++) {
      // on the grid of frames, between frames, over the end
      const start = round % 3 === 0 ? Math.floor(random() * length * 10) / 10 : random() * (length - 0.1);
      const duration = round === 1 ? 1e6 : 0.1 + random() * (round % 2 === 0 ? 3 : length);
      const { mp4, fmp4, files } = await both([file], MS + start * 1000, duration * 1000);
      t.is(fmp4.start, mp4.start);
      t.is(fmp4.duration, mp4.duration);
      t.is(files[0]?.length, mp4.size);
      const wanted = expected(packets, tracks, start, duration);
      const [leading = []] = wanted;
      if (tracks[0]?.type === 'video') {
        const [first] = leading as [Packet, ...Packet[]];
        const begin = Math.min(...packets.filter(({ track }) => track.id === 0).map(seconds));
        t.true(Math.abs(mp4.start - MS - (seconds(first) - begin) * 1000) < 0.01);
      }
      for (const bytes of files) {
        for (const track of placedTracks(bytes)) {
          const own = shownSamples(track);
          const frames = wanted[track.id - 1] as Packet[];
          if (track.type === 'video') {
            t.true(track.samples[0]?.key);
            t.is(numbers(own), numbers(frames), `${start} ${duration}`);
            t.true(Math.abs(own[0]?.time as number) < 1e-4);
          } else {
            // audio is cut within its frames
            t.true(Math.abs(own.length - frames.length) <= 2, `${own.length} of ${frames.length}`);
            const all = packets.filter(({ track: { id } }) => id === tracks[track.id - 1]?.id);
            for (const { time, data } of own) {
              const packet = all.find((one) => one.data.equals(data)) as Packet;
              const leader = Math.min(...packets.filter(({ track: { id } }) => id === tracks[0]?.id).map(seconds));
              const wall = MS + (seconds(packet) - leader) * 1000;
              t.true(Math.abs(mp4.start + time * 1000 - wall) < 1, `${mp4.start + time * 1000 - wall} ms`);
            }
          }
        }
      }
    }
  });

test('any range of a clip has the bytes of the whole', async (t) => {
  const [tracks, packets] = STREAMS['B-frames, audio later'] as (typeof STREAMS)[string];
  const file = await clipFile(tracks, unique(packets), MS);
  const clip = await Mp4Clip.open([file], { start: MS + 3210, duration: 9000 });
  const whole = await collect(clip.read(0, clip.size));
  const random = seeded(5);
  for (let round = 0; round < 300; round++) {
    const from = Math.floor(random() * clip.size);
    const to = from + Math.floor(random() * (clip.size - from + 1));
    t.true(whole.subarray(from, to).equals(await collect(clip.read(from, to))));
  }
});

test('a clip has the same tag on all nodes, and another one has another', async (t) => {
  const [tracks, packets] = STREAMS['H.264 and AAC'] as (typeof STREAMS)[string];
  const span = { start: MS + 3000, duration: 5000 };
  const tag = async (id: string, other: Partial<typeof span> = {}) =>
    (await Mp4Clip.open([{ ...(await clipFile(tracks, packets, MS)), id }], { ...span, ...other })).etag;
  t.is(await tag('a'), await tag('a'));
  t.regex(await tag('a'), /^"[\w-]+"$/);
  t.is(
    new Set([await tag('a'), await tag('b'), await tag('a', { duration: 6000 }), await tag('a', { start: MS })]).size,
    4,
  );
});

test('a clip reads the index of a recording, the tables of its span, and only then its media', async (t) => {
  const bytes = 5000;
  const packets = interleaved(
    videoPackets(VIDEO, { to: 600, gop: 60, bytes }),
    audioPackets(AUDIO, { to: 600, bytes: 200 }),
  );
  const file = await clipFile([VIDEO, AUDIO], packets, MS);
  const index = file.source.bytesRead;
  t.true(index < 200_000, `${index} bytes`);
  const clip = await Mp4Clip.open([file], { start: MS + 300_000, duration: 60_000 });
  t.true(file.source.bytesRead - index < 100_000);
  const { reads } = file.source;
  await collect(clip.read(0, clip.size));
  t.true(file.source.reads - reads <= Math.ceil(clip.size / PIECE) + 1);
  t.true(file.source.largest <= PIECE);
});

test('of a clip that is read slowly, no more than two pieces are held', async (t) => {
  const packets = videoPackets(VIDEO, { to: 60, gop: 600, bytes: 20_000 });
  const file = await clipFile([VIDEO], packets, MS);
  const span = { start: MS, duration: 60_000 };
  const clip = await Mp4Clip.open([file], span);
  for (const pieces of [clip.read(0, clip.size), (await openFmp4Clip([file], span)).pieces]) {
    const before = file.source.bytesRead;
    let media = 0;
    for await (const piece of pieces) {
      t.true(piece.length <= PIECE);
      media += piece.length;
      // tables of samples are among what was read
      t.true(file.source.bytesRead - before <= media + PIECE + 60_000);
      if (media > 10 * PIECE) break;
    }
    t.true(media > 10 * PIECE);
  }
});

for (const continues of [false, true])
  test(`files that follow each other become one clip${continues ? ' on one timeline' : ''}`, async (t) => {
    const video = unique(reordered(videoPackets(VIDEO, { from: 10, to: 40, gop: 60 })));
    const audio = unique(audioPackets(AUDIO, { from: 10, to: 40 }));
    const files: ClipFile[] = [];
    const origin = continues ? { time: 10 * 90_000, timebase: VIDEO.timebase } : undefined;
    for (const [from, to] of [
      [10, 20],
      [20, 30],
      [30, 40],
    ] as const) {
      const isIn = ({ dts, track }: Packet) => {
        const time = dts / (track as MediaTrack).timebase.den;
        return time >= from && time < to;
      };
      // a recording is dated when its first frame comes
      const date = MS + (from - 10) * 1000 + from * 7;
      files.push(await clipFile([VIDEO, AUDIO], interleaved(video, audio).filter(isIn), date, origin));
    }
    const first = (files[0] as ClipFile).startTime;
    const { mp4, files: written } = await both(files, first + 4500, 22_000);
    t.is(mp4.stop, undefined);
    t.is(mp4.size, written[0]?.length as number);
    const all = [...video].sort((one, other) => one.pts - other.pts);
    for (const bytes of written) {
      const [picture, sound] = placedTracks(bytes).map(shownSamples) as [PlacedSample[], PlacedSample[]];
      t.is(numbers(picture), numbers(all.slice(135, 135 + 660)));
      for (const [index, { time }] of picture.entries()) t.true(Math.abs(time - index / 30) < 0.001);
      t.true(Math.abs(sound.length - (22 * 48_000) / 1024) < 2.5);
      for (const [index, { time }] of sound.entries())
        t.true(Math.abs(time - (sound[0]?.time ?? 0) - (index * 1024) / 48_000) < 0.03, `${time}`);
    }
    // from within a later file on
    const later = await Mp4Clip.open(files, { start: (files[1] as ClipFile).startTime + 2000, duration: 1000 });
    const [shown] = placedTracks(await collect(later.read(0, later.size))).map(shownSamples);
    t.is(numbers(shown), numbers(all.slice(360, 390)));
  });

test('a clip ends before a gap, and before another format', async (t) => {
  const media = (from: number, to: number) =>
    interleaved(videoPackets(VIDEO, { from, to }), audioPackets(AUDIO, { from, to }));
  const one = await clipFile([VIDEO, AUDIO], media(0, 10), MS);
  const gone = await clipFile([VIDEO, AUDIO], media(0, 10), MS + 15_000);
  const larger = videoTrack({ config: AVC_HIGH, width: 1280, height: 720 });
  const other = await clipFile([larger], videoPackets(larger, { to: 10 }), MS + 10_000);
  const span = { start: MS + 5000, duration: 10_000 };
  for (const [next, stop] of [
    [gone, 'gap'],
    [other, 'change'],
  ] as const) {
    const clip = await Mp4Clip.open([one, next], span);
    t.is(clip.stop, stop);
    t.is(clip.duration, 5);
  }
  t.is((await Mp4Clip.open([one], span)).stop, 'gap');
  t.is((await Mp4Clip.open([one, other], { ...span, duration: 5000 })).stop, undefined);
  t.is((await Mp4Clip.open([one, gone], { start: MS + 16_000, duration: 1000 })).start, MS + 16_000);
});

test('a clip goes on with audio of which another bitrate was declared, and ends before another configuration', async (t) => {
  const files = async (...tracks: MediaTrack[]) =>
    await Promise.all(
      tracks.map((track, index) => clipFile([track], audioPackets(track as never, { to: 10 }), MS + index * 10_000)),
    );
  const span = { start: MS, duration: 20_000 };
  const stop = async (other: MediaTrack) => (await Mp4Clip.open(await files(AUDIO, other), span)).stop;
  t.is(await stop(audioTrack({ bitrate: 96_000 })), undefined);
  t.is(await stop(audioTrack({ config: AAC_SSR })), 'change');
  t.is(await stop(audioTrack({ channels: 1 })), 'change');
});

test('there is no clip of a time that was not recorded', async (t) => {
  const file = await clipFile([VIDEO], videoPackets(VIDEO, { to: 10 }), MS);
  for (const span of [
    { start: MS + 10_000, duration: 1000 },
    { start: MS - 5000, duration: 5000 },
    { start: MS + 1001, duration: 1 },
    { start: MS + 1000, duration: 0 },
    { start: MS + 1e12, duration: 1e12 },
  ])
    for (const open of [() => Mp4Clip.open([file], span), () => openFmp4Clip([file], span)])
      t.is((await t.throwsAsync(open(), { instanceOf: ClipError }))?.fault, 'empty');
  await t.throwsAsync(Mp4Clip.open([], { start: MS, duration: 1000 }), { instanceOf: ClipError });
});
