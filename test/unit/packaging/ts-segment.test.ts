import { pino } from 'pino';
import test from 'ava';
import { TsMuxer } from '../../../src/containers/mpegts/muxer.ts';
import { FaultLog } from '../../../src/log.ts';
import { Run, RUNS } from '../../../src/packaging/run.ts';
import { Segmenter } from '../../../src/packaging/segmenter.ts';
import { TsSegment } from '../../../src/packaging/ts-segment.ts';
import { unitsOf } from '../../../src/packaging/ts-units.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack, withNal } from '../../support/packets.ts';
import { analyse } from '../../support/ts-analyser.ts';

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

test('its length is known before it is written, and it is written once', (t) => {
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

test('what is large is written with turns of others in between', async (t) => {
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

test('who asks for a body that is being written gets all of it, and nothing is written twice', async (t) => {
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
  const units = unitsOf([{ track: audio, runs: [new Run(0, samples)] }]);
  t.deepEqual(
    units.map(({ dts, data }) => [dts, data.length]),
    [
      [0, 1],
      [544, 3],
    ],
  );
});
