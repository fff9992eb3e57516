import { pino } from 'pino';
import test from 'ava';
import { TsMuxer } from '../../../src/containers/mpegts/muxer.ts';
import type { DataTrack } from '../../../src/core/track.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { FrameRun, RUNS } from '../../../src/packaging/frame-run.ts';
import type { Segment } from '../../../src/packaging/segment.ts';
import { Segmenter } from '../../../src/packaging/segmenter.ts';
import { TsSegment } from '../../../src/packaging/ts-segment.ts';
import { unitsOf } from '../../../src/packaging/ts-units.ts';
import {
  audioPackets,
  audioTrack,
  dataTrack,
  eventPacket,
  interleaved,
  videoPackets,
  videoTrack,
  withNal,
} from '../../support/media/packets.ts';
import { spliceInsert } from '../../support/media/splice.ts';
import { analyse } from '../../support/mpegts/ts-analyser.ts';

const OPTIONS = { chunkDuration: 2, segmentDuration: 2, firstSegmentDuration: 2, segmentCount: 10, firstMsn: 0 };
const FACTS = { msn: 0, duration: 2, discontinuity: false, wallClock: 0 };

/** The first segment of two pictures and one sound, track by track. @param bytes of a picture */
function segment(bytes = 100) {
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const tracks = [videoTrack(), audioTrack(), videoTrack({ id: 2, name: 'small' })] as const;
  const segmenter = new Segmenter(RUNS, OPTIONS, log, faults);
  segmenter.setTracks(tracks);
  const [video, audio, small] = tracks;
  const pictures = [video, small].map((track) => videoPackets(track, { to: 4.5, gop: 60, bytes }).map(withNal));
  for (const packet of interleaved(...pictures, audioPackets(audio, { to: 4.5 }))) segmenter.push(packet);
  const of = (id: number) => {
    const found = segmenter.packagers.get(id)?.window.kept[0];
    if (found === undefined) throw new Error(`track ${id} has no segment`);
    return found;
  };
  return { tracks, faults, of };
}

test('the length of an MPEG-TS segment is known before it is written, and it is written once', (t) => {
  const {
    tracks: [video, audio],
    faults,
    of,
  } = segment();
  const made = new TsSegment(FACTS, [of(0), of(1)], new TsMuxer([video, audio]), faults);
  t.false(made.gap);
  const [body] = made.body;
  t.is(body?.length, made.bytes);
  t.is(made.body[0], body);
  t.is(made.write(), undefined);
  const { errors, pes } = analyse(body as Buffer);
  t.deepEqual(errors, []);
  t.is(pes.get(0x100)?.length, 60);
});

/** A segment of some megabytes, and what is asked of it. */
function large() {
  const {
    tracks: [video, audio],
    faults,
    of,
  } = segment(120_000);
  const made = () => new TsSegment(FACTS, [of(0), of(1)], new TsMuxer([video, audio]), faults);
  return { one: made(), other: made(), of };
}

test('a large MPEG-TS segment is written with turns of others in between', async (t) => {
  const { one, other, of } = large();
  let turns = 0;
  const count = (): void => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const [writing, again] = [one.write(), one.write()];
  t.truthy(writing);
  t.is(again, writing);
  await writing;
  clearImmediate(next);
  t.true(turns >= 5, `${turns} turns for ${one.bytes} bytes`);
  t.is(one.write(), undefined);
  t.true(one.body.length > 5);
  const whole = Buffer.concat(one.body);
  t.is(whole.length, one.bytes);
  t.true(whole.equals(Buffer.concat(other.body)));
  t.deepEqual(analyse(whole).errors, []);
  t.is(
    of(0).parts.reduce((sum, { data }) => sum + data.samples.length, 0),
    0,
  );
});

test('a read of an MPEG-TS segment that is being written gets all of it, and nothing is written twice', async (t) => {
  const { one, other } = large();
  const writing = one.write();
  const whole = Buffer.concat(one.body);
  await writing;
  t.is(Buffer.concat(one.body).length, one.bytes);
  t.true(whole.equals(Buffer.concat(other.body)));
});

test('frames are let go of when all that share them are written', (t) => {
  const {
    tracks: [video, audio, small],
    faults,
    of,
  } = segment();
  const one = new TsSegment(FACTS, [of(0), of(1)], new TsMuxer([video, audio]), faults);
  const other = new TsSegment(FACTS, [of(2), of(1)], new TsMuxer([small, audio]), faults);
  const frames = (id: number) => of(id).parts.reduce((sum, { data }) => sum + data.samples.length, 0);
  const sounds = frames(1);
  t.true(sounds > 90);
  t.is(one.body.length, 1);
  t.deepEqual([frames(0), frames(1), frames(2)], [0, sounds, 60]);
  t.is(other.body.length, 1);
  t.deepEqual([frames(0), frames(1), frames(2)], [0, 0, 0]);
});

test('sound that has a hole goes in groups on both sides of it', (t) => {
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const audio = audioTrack();
  const segmenter = new Segmenter(RUNS, OPTIONS, log, faults);
  segmenter.setTracks([audio]);
  const packets = audioPackets(audio, { to: 4.5 }).filter(({ dts }) => dts < 48_000 || dts > 50_000 + 4 * 1024);
  for (const packet of packets) segmenter.push(packet);
  const found = segmenter.packagers.get(1)?.window.kept[0];
  const made = new TsSegment(FACTS, found === undefined ? [] : [found], new TsMuxer([audio]), faults);
  const groups = analyse(made.body[0] as Buffer).pes.get(0x100) ?? [];
  const begins = packets.map(({ pts }) => 90_000 + Math.round((pts * 90_000) / 48_000));
  t.true(groups.every(({ pts }) => begins.includes(pts)));
  const behind = begins.find((time) => time > 180_000);
  t.true(
    groups.some(({ pts }) => pts === behind),
    'what is behind the hole tells its own time',
  );
});

test('a frame of sound that is followed too soon goes by itself, for players count on from the first of a group', (t) => {
  const audio = audioTrack();
  const frame = { key: true, compositionOffset: 0, data: Buffer.alloc(100) };
  const samples = [544, 1024, 1024, 1024].map((duration) => ({ ...frame, duration }));
  const units = unitsOf([{ track: audio, runs: [new FrameRun(0, samples)] }]);
  t.deepEqual(
    units.map(({ dts, data }) => [dts, data.length]),
    [
      [0, 1],
      [544, 3],
    ],
  );
});

test('events go out with the picture once, or with the sound that they belong beside, at their time', (t) => {
  const log = pino({ level: 'silent' });
  const faults = new FaultLog(log);
  const [video, audio] = [videoTrack(), audioTrack()];
  const id3 = dataTrack({ timebase: { num: 1, den: 1000 } });
  const forAudio: DataTrack = { ...id3, id: 1025, target: 'audio' };
  const segmenter = new Segmenter(RUNS, OPTIONS, log, faults);
  segmenter.setTracks([video, audio, id3, forAudio]);
  const events = [eventPacket(id3, 500, 'all'), eventPacket(forAudio, 1500, 'audio')];
  const media = [videoPackets(video, { to: 4.5, gop: 60 }).map(withNal), audioPackets(audio, { to: 4.5 })];
  for (const packet of interleaved(...media, events)) segmenter.push(packet);
  const kept = [0, 1].map((id) => segmenter.packagers.get(id)?.window.kept[0]) as [
    Segment<FrameRun>,
    Segment<FrameRun>,
  ];
  const texts = (made: TsSegment, pid: number) => {
    const { errors, pes } = analyse(made.body[0] as Buffer);
    t.deepEqual(errors, []);
    return pes.get(pid)?.map(({ pts, payload }) => [payload.toString(), pts]);
  };
  const expected = [
    ['all', 90_000 + 45_000],
    ['audio', 90_000 + 135_000],
  ];
  const both = new TsSegment(FACTS, kept, new TsMuxer([video, audio]), faults);
  const sound = new TsSegment(FACTS, [kept[1]], new TsMuxer([audio]), faults);
  t.deepEqual([texts(both, 0x102), texts(sound, 0x101)], [expected, expected]);
  t.is((both.body[0] as Buffer).length, both.bytes);
});

test('events of another codec under an id that is known get a stream of their own', (t) => {
  const video = videoTrack();
  const muxer = new TsMuxer([video]);
  const written = (track: DataTrack, data: Buffer) => {
    muxer.addTracks([track]);
    muxer.repeatTables();
    return analyse(muxer.write(eventPacket(track, 0, data)));
  };
  const id3 = written(dataTrack(), Buffer.from('ID3'));
  t.deepEqual(
    id3.pes.get(0x101)?.map(({ payload }) => payload.toString()),
    ['ID3'],
  );
  const section = spliceInsert({ eventId: 1, out: true });
  const splice = written(dataTrack({ codec: 'SCTE35' }), section);
  t.deepEqual([...splice.sections.entries()], [[0x102, [section]]]);
  t.deepEqual(
    [...(splice.pmts[0]?.streams ?? [])],
    [
      [0x100, 0x1b],
      [0x102, 0x86],
    ],
  );
});
