import test from 'ava';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import type { Packet } from '../../../../src/core/packet.ts';
import type { AudioTrack, VideoTrack } from '../../../../src/core/track.ts';
import { ChannelWriter } from '../../../../src/channels/scheduled/channel-writer.ts';
import type { ItemUnit } from '../../../../src/channels/scheduled/item-source.ts';
import { audioTrack, dataTrack, videoTrack } from '../../../support/media/packets.ts';

const FRAME_SAMPLES = 1024;

interface Shape {
  readonly video?: { readonly rate: number; readonly frames: number; readonly reordered: number };
  readonly samplerate?: number;
  /** Milliseconds where its audio begins and ends. */
  readonly audio?: readonly [number, number];
}

/** Units of an item from its time 0 on, in the order in which they are decoded. */
function itemOf({ video, samplerate = 48_000, audio }: Shape): ItemUnit[] {
  const units: ItemUnit[] = [];
  if (video !== undefined) {
    const track: VideoTrack = videoTrack({ id: 0 });
    const step = VIDEO_TIMEBASE.den / video.rate;
    for (let index = 0; index < video.frames; index++) {
      // groups of one frame that is shown last, and those that refer to it
      const group = video.reordered + 1;
      const place = index === 0 ? 0 : Math.floor((index - 1) / group) * group + 1;
      const inGroup = index - place;
      const shown = index === 0 ? 0 : inGroup === 0 ? place + group - 1 : index - 1;
      const pts = Math.round(shown * step);
      const dts = Math.round((index - video.reordered) * step);
      const unit = { track, dts, pts: Math.max(pts, dts), duration: 0, key: index === 0, data: Buffer.alloc(1) };
      units.push({ ...unit, at: dts / 90, shownAt: pts / 90 });
    }
  }
  if (audio !== undefined) {
    const track: AudioTrack = audioTrack({ id: 100, samplerate, timebase: { num: 1, den: samplerate } });
    const ms = 1000 / samplerate;
    const from = Math.round(audio[0] / ms);
    for (let dts = from; dts * ms < audio[1]; dts += FRAME_SAMPLES) {
      const unit = { track, dts, pts: dts, duration: FRAME_SAMPLES, key: true, data: Buffer.alloc(1) };
      units.push({ ...unit, at: dts * ms, shownAt: dts * ms });
    }
  }
  return units.sort((one, other) => one.at - other.at);
}

/** An item and the time in milliseconds at which it begins. */
interface PlacedItem {
  readonly at: number;
  readonly shape: Shape;
}

function write(items: readonly PlacedItem[]): Packet[] {
  const packets: Packet[] = [];
  const writer = new ChannelWriter({ setTracks: () => {}, write: (packet) => void packets.push(packet) });
  for (const { at, shape } of items) {
    const units = itemOf(shape);
    const tracks = new Map(units.map(({ track }) => [track.id, track]));
    writer.begin([...tracks.values()], at, at);
    for (const unit of units) writer.write(unit);
  }
  return packets;
}

const PLAIN = { rate: 25, frames: 50, reordered: 0 };
const CASES: Record<string, readonly PlacedItem[]> = {
  'frames that are reordered after such that are not': [
    { at: 0, shape: { video: PLAIN, audio: [0, 2000] } },
    { at: 2000, shape: { video: { rate: 25, frames: 50, reordered: 2 }, audio: [0, 2000] } },
    { at: 4000, shape: { video: PLAIN, audio: [0, 2000] } },
  ],
  'many that are reordered, of a high frame rate': [
    { at: 0, shape: { video: { rate: 24, frames: 48, reordered: 1 }, audio: [0, 2000] } },
    { at: 2000, shape: { video: { rate: 60, frames: 120, reordered: 4 }, audio: [0, 2000] } },
    { at: 4000, shape: { video: { rate: 12, frames: 24, reordered: 3 }, audio: [0, 2000] } },
  ],
  'audio that overlaps by 100 ms': [
    { at: 0, shape: { video: PLAIN, audio: [0, 2100] } },
    { at: 2000, shape: { video: { rate: 25, frames: 50, reordered: 2 }, audio: [0, 2000] } },
  ],
  'audio that overlaps, of another sampling rate': [
    { at: 0, shape: { audio: [0, 2060], samplerate: 44_100 } },
    { at: 2000, shape: { audio: [0, 2000], samplerate: 48_000 } },
    { at: 3970, shape: { audio: [0, 2000], samplerate: 22_050 } },
  ],
};

for (const [name, items] of Object.entries(CASES)) {
  test(`${name}: times grow in every timebase`, (t) => {
    const packets = write(items);
    for (const id of [0, 100]) {
      const own = packets.filter(({ track }) => track.id === id);
      for (const [index, packet] of own.entries()) {
        const { track, dts, pts } = packet;
        t.true(pts >= dts);
        const before = own[index - 1];
        if (before === undefined) continue;
        const seconds = (ticks: number, { num, den }: Packet['track']['timebase']): number => (ticks * num) / den;
        const [was, is] = [seconds(before.dts, before.track.timebase), seconds(dts, track.timebase)];
        for (const den of [90_000, 1000, track.timebase.den])
          for (const round of [Math.round, Math.floor])
            t.true(round(is * den + 1e-6) > round(was * den + 1e-6), `${id} ${before.dts} -> ${dts} at 1/${den}`);
        if (track.type !== 'audio') continue;
        const least = seconds(before.duration, before.track.timebase) - 1 / track.timebase.den;
        t.true(is - was >= least - 1e-9, `audio at ${was}, then at ${is}`);
      }
    }
  });

  test(`${name}: each item is shown in its order, at its time`, (t) => {
    const packets = write(items);
    const video = packets.filter(({ track }) => track.type === 'video');
    let done = 0;
    for (const { at, shape } of items) {
      const units = itemOf(shape).filter(({ track }) => track.type === 'video');
      const own = video.slice(done, (done += units.length));
      t.is(own.length, units.length, 'no picture is missing');
      const order = (of: readonly { pts: number }[]): number[] =>
        [...of.keys()].sort((a, b) => (of[a]?.pts ?? 0) - (of[b]?.pts ?? 0));
      t.deepEqual(order(own), order(units));
      // the first item tells where the stream begins
      for (const [index, { pts }] of own.entries())
        t.true(Math.abs(pts - 500 * 90 - at * 90 - (units[index]?.pts ?? 0)) <= 10 * 90, `${at} ${index}`);
    }
    const audio = packets.filter(({ track }) => track.type === 'audio');
    t.true(audio.length > 0);
  });
}

test('an event that takes effect later does not hold up what follows', (t) => {
  const packets: Packet[] = [];
  const writer = new ChannelWriter({ setTracks: () => {}, write: (packet) => void packets.push(packet) });
  const units = itemOf({ video: PLAIN, audio: [0, 2000] });
  const track = dataTrack({ id: 200, codec: 'SCTE35' });
  const splice = { track, dts: 90_000, pts: 9 * 90_000, duration: 0, key: true, data: Buffer.alloc(1) };
  writer.begin([...new Set(units.map((unit) => unit.track))], 0, 0);
  for (const unit of units) writer.write(unit);
  const { end } = writer;
  writer.write({ ...splice, at: 1000, shownAt: 1000 });
  t.is(writer.end, end);
  const { dts, pts } = packets.at(-1) as Packet;
  t.is(pts - dts, 8 * 90_000, 'it tells when');
});
