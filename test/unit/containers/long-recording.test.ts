import test, { type ExecutionContext } from 'ava';
import type { FileMuxer } from '../../../src/containers/file-muxer.ts';
import { Mp4File } from '../../../src/containers/fmp4/file.ts';
import { readPesHeader } from '../../../src/containers/mpegts/pes-header.ts';
import { PACKET_BYTES } from '../../../src/containers/mpegts/stream-types.ts';
import { ticksBetween } from '../../../src/containers/mpegts/times.ts';
import { payloadStart, pcrOf, pidOf, startsUnit } from '../../../src/containers/mpegts/transport-packet.ts';
import { WebmFile } from '../../../src/containers/webm/file.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { MILLISECONDS, type Timebase } from '../../../src/core/timebase.ts';
import type { AudioTrack, VideoTrack } from '../../../src/core/track.ts';
import { TsFile } from '../../../src/recording/ts-file.ts';
import { findBox, parseBoxes } from '../../support/media/boxes.ts';
import { indexOf } from '../../support/media/mp4-index.ts';
import { audioTrack, videoTrack } from '../../support/media/packets.ts';

/** Where the stream is when the recording begins: days after its own beginning. */
const LATER = 400_000;
const NAL = Buffer.from('0000000141', 'hex');
const HOUR = 3600;

interface Source {
  readonly video: VideoTrack;
  readonly audio: AudioTrack;
  /** Samples of an audio frame. */
  readonly samples: number;
  /** Only each of so many packets is there: times are the same, and there are fewer to look at. */
  readonly each: number;
}

/** 29.97 frames a second beside audio, each time the nearest tick to the true one. */
function* packets({ video, audio, samples, each }: Source, seconds: number): Generator<Packet> {
  const shown = { track: video, step: (each * 1001) / 30_000, count: 0 };
  const heard = { track: audio, step: (each * samples) / audio.samplerate, count: 0 };
  for (;;) {
    const lane = shown.step * shown.count <= heard.step * heard.count ? shown : heard;
    const time = lane.step * lane.count;
    if (time >= seconds) return;
    const { num, den } = lane.track.timebase;
    const dts = Math.round(((LATER + time) * den) / num);
    const key = lane === heard || lane.count % 10 === 0;
    yield { track: lane.track, dts, pts: dts, duration: 0, key, data: NAL };
    lane.count++;
  }
}

function source(video: Partial<VideoTrack>, audio: Partial<AudioTrack>, samples: number, each: number): Source {
  return { video: videoTrack(video), audio: audioTrack(audio), samples, each };
}

/** Seconds in the file that a packet is to have. */
function trueTime({ dts, track: { timebase } }: Packet): number {
  return (dts * timebase.num) / timebase.den - LATER;
}

/** A tick of the track, and what times of the file are rounded to. */
function tolerance(timebase: Timebase, own: number): number {
  return timebase.num / timebase.den + own;
}

/** Hands what the file is made of over, and what went in. */
function write(file: FileMuxer, from: Source, seconds: number, take: (bytes: readonly Buffer[]) => void): Packet[] {
  const written: Packet[] = [];
  for (const packet of packets(from, seconds)) {
    written.push(packet);
    take(file.write(packet));
  }
  take(file.end().tail);
  return written;
}

const MS: Partial<VideoTrack> = { timebase: MILLISECONDS };
const CD = { timebase: { num: 1, den: 44_100 }, samplerate: 44_100 };

for (const [name, from] of [
  ['90 kHz beside 44.1 kHz', source({}, CD, 1024, 24)],
  ['milliseconds beside 48 kHz', source(MS, {}, 1024, 24)],
  ['milliseconds in both', source(MS, { timebase: MILLISECONDS, samplerate: 44_100 }, 1024, 24)],
] as const) {
  test(`14 h of MP4: ${name} stay together, in fragments and in the index`, (t) => {
    const file = new Mp4File([from.video, from.audio]);
    const starts = new Map<number, number>();
    let movie: Buffer = NAL;
    const written = write(file, from, 14 * HOUR, (pieces) => {
      for (const piece of pieces) {
        const type = piece.toString('latin1', 4, 8);
        if (type === 'moof')
          for (const [id, time] of fragmentStarts(piece.subarray(8, piece.readUInt32BE(0)))) starts.set(id, time);
        if (type === 'moov') movie = piece.subarray(8);
      }
    });
    const tracks = indexOf(movie);
    for (const [index, track] of [from.video, from.audio].entries()) {
      const own = written.filter((packet) => packet.track === track);
      const { times, count, timescale, empty, duration } = tracks[index] as (typeof tracks)[number];
      t.is(count, own.length);
      const worst = own.reduce(
        (most, packet, i) =>
          Math.max(most, Math.abs(empty / 90_000 + (times[i] as number) / timescale - trueTime(packet))),
        0,
      );
      t.true(worst <= tolerance(track.timebase, 1 / 90_000), `${worst} s`);
      t.true(duration > 13.9 * HOUR * timescale);
      // the last fragment is a second or two before the end
      const last = (starts.get(index + 1) as number) / timescale;
      t.true(
        last > 14 * HOUR - 3 && own.some((packet) => Math.abs(trueTime(packet) - last) <= tolerance(track.timebase, 0)),
      );
    }
  });
}

test('14 h of WebM: blocks have the times of their packets', (t) => {
  const from = source(
    { codec: 'VP8', config: undefined, timebase: MILLISECONDS },
    { codec: 'OPUS', config: undefined },
    960,
    12,
  );
  const chunks: Buffer[] = [];
  const written = write(
    new WebmFile([from.video, from.audio]),
    from,
    14 * HOUR,
    (pieces) => void chunks.push(...pieces),
  );
  const times = blockTimes(Buffer.concat(chunks));
  t.is(times.length, written.length);
  compare(t, times, written, 0.001);
});

test('27 h of MPEG-TS: times wrap in 33 bits and go on, and the clock with them', (t) => {
  const from = source({}, CD, 1024, 40);
  const fault = (text: string): never => t.fail(text) as never;
  const times: (readonly [track: number, time: number])[] = [];
  const last = new Map<number, number>();
  let clock = 0;
  const go = (pid: number, ticks: number): number => {
    const before = last.get(pid);
    const now = before === undefined ? ticks : before + ticksBetween(before % 2 ** 33, ticks);
    last.set(pid, now);
    return now / 90_000;
  };
  const written = write(new TsFile([from.video, from.audio], { onFault: fault }), from, 27 * HOUR, (pieces) => {
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; at += PACKET_BYTES) {
        const pcr = pcrOf(piece, at);
        if (pcr !== undefined) {
          const now = go(-1, pcr);
          if (now < clock || now > clock + 2) fault(`clock from ${clock} to ${now}`);
          clock = now;
        }
        const pid = pidOf(piece, at);
        if (!startsUnit(piece, at) || pid < 0x100 || pid > 0x101) continue;
        const pts = readPesHeader(piece.subarray(payloadStart(piece, at), at + PACKET_BYTES))?.pts as number;
        const time = go(pid, pts);
        if (Math.abs(time - clock) > 2) fault(`${time} at ${clock}`);
        // its times are a second later than the file's
        times.push([pid - 0x100, time - 1]);
      }
    }
  });
  t.true(clock > 26.9 * HOUR);
  const sorted = (track: VideoTrack | AudioTrack) => written.filter((packet) => packet.track === track);
  compare(
    t,
    times.filter(([track]) => track === 0),
    sorted(from.video),
    1 / 90_000,
  );
  compare(
    t,
    times.filter(([track]) => track === 1),
    sorted(from.audio),
    1 / 90_000,
  );
});

/** Each time is that of its packet. */
function compare(
  t: ExecutionContext,
  times: readonly (readonly [track: number, time: number])[],
  written: readonly Packet[],
  own: number,
): void {
  t.is(times.length, written.length);
  let worst = 0;
  for (const [index, packet] of written.entries()) {
    const [track, time] = times[index] as readonly [number, number];
    if (track !== packet.track.id) return t.fail(`packet ${index} is of track ${track}`);
    worst = Math.max(worst, Math.abs(time - trueTime(packet)) - tolerance(packet.track.timebase, own));
  }
  t.true(worst <= 0, `${worst} s`);
}

/** Ids and decode times of the tracks in a `moof`. @param moof its content */
function fragmentStarts(moof: Buffer): [id: number, time: number][] {
  return parseBoxes(moof)
    .filter(({ type }) => type === 'traf')
    .map(({ content }) => {
      const tfhd = findBox(content, 'tfhd') as Buffer;
      return [tfhd.readUInt32BE(4), Number((findBox(content, 'tfdt') as Buffer).readBigUInt64BE(4))];
    });
}

/** Track and seconds of all blocks of a WebM file. */
function blockTimes(bytes: Buffer): [track: number, time: number][] {
  const times: [number, number][] = [];
  let cluster = 0;
  let at = bytes.indexOf('1f43b675', 0, 'hex');
  while (at < bytes.length) {
    const isLong = bytes[at] === 0x1f || bytes[at] === 0x1c;
    if (bytes[at] === 0x1c) break;
    const id = isLong ? bytes.readUInt32BE(at) : (bytes[at] as number);
    at += isLong ? 4 : 1;
    const extra = Math.clz32(bytes[at] as number) - 24;
    let size = (bytes[at] as number) & (0xff >> (extra + 1));
    for (let i = 1; i <= extra; i++) size = size * 256 + (bytes[at + i] as number);
    at += 1 + extra;
    if (id === 0x1f43b675) continue;
    if (id === 0xe7) cluster = size === 0 ? 0 : bytes.readUIntBE(at, size);
    else times.push([((bytes[at] as number) & 0x7f) - 1, (cluster + bytes.readInt16BE(at + 1)) / 1000]);
    at += size;
  }
  return times;
}
