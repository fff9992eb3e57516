import test from 'ava';
import { TsMuxer } from '../../../../src/containers/mpegts/muxer.ts';
import type { DataTrack } from '../../../../src/core/track.ts';
import { VIDEO_TIMEBASE } from '../../../../src/core/timebase.ts';
import { codedPackets, tracksOf, type Coded } from '../../../support/media/coded-packets.ts';
import { setUpTsSource } from '../../../support/mpegts/ts-source.ts';

/** Seconds that the muxer adds. */
const LATER = 1;
const CODED: readonly (readonly [name: string, coded: Coded])[] = [
  ['H264 with B-frames and AAC', { video: { codec: 'H264' }, audio: 'AAC', seconds: 3 }],
  ['H265 and E-AC-3', { video: { codec: 'H265' }, audio: 'EAC3', seconds: 2 }],
  ['H264 in large frames', { video: { codec: 'H264', size: '1280x720', gop: 10 }, seconds: 1 }],
  ['Opus', { audio: 'OPUS', seconds: 2 }],
  ['MP3', { audio: 'MP3', seconds: 1 }],
  ['MP2', { audio: 'MP2', seconds: 1 }],
  ['AC-3', { audio: 'AC3', seconds: 1 }],
];

for (const [name, coded] of CODED) {
  test(`${name}: what Kiln puts into MPEG-TS comes out of it as it was`, (t) => {
    const sent = codedPackets(coded);
    const muxer = new TsMuxer(tracksOf(sent));
    const { source, packets, failures } = setUpTsSource(t, { timestampMode: 'Original' });
    for (const packet of sent) source.push(muxer.write(packet));
    // a packet of open length may wait for the next one
    source.flush();
    t.deepEqual(failures, []);
    for (const type of ['video', 'audio'] as const) {
      const of = (list: typeof sent) => list.filter(({ track }) => track.type === type);
      const [before, after] = [of(sent), of(packets)];
      t.is(after.length, before.length);
      t.true(after.every(({ data }, i) => data.equals(before[i]?.data as Buffer)));
      t.true(after.every(({ key }, i) => key === before[i]?.key));
      t.true(
        after.every(({ dts, pts, track }, i) => {
          const one = before[i] as (typeof sent)[number];
          const seconds = (ticks: number, of: typeof track) => (ticks * of.timebase.num) / of.timebase.den;
          const isNear = (ours: number, theirs: number) =>
            Math.abs(seconds(ours, track) - seconds(theirs, one.track) - LATER) < 1 / 40_000;
          return isNear(pts, one.pts) && isNear(dts, one.dts);
        }),
      );
      const [told, known] = [before[0]?.track, after[0]?.track];
      t.is(known?.codec, told?.codec);
      if (told !== undefined && 'config' in told && known !== undefined && 'config' in known && type === 'video')
        t.deepEqual(known.config, told.config);
    }
  });
}

test('a splice takes effect at its time, on the clock of the stream that it is in', (t) => {
  const sent = codedPackets({ audio: 'AAC', seconds: 1 });
  const cues: DataTrack = {
    id: 10,
    name: 'SCTE35',
    type: 'data',
    codec: 'SCTE35',
    timebase: VIDEO_TIMEBASE,
    bypass: true,
  };
  const muxer = new TsMuxer([...tracksOf(sent), cues]);
  const { source, packets } = setUpTsSource(t, { timestampMode: 'Original' });
  const splice = Buffer.from('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=', 'base64');
  for (const packet of sent) source.push(muxer.write(packet));
  source.push(muxer.write({ track: cues, dts: 90_000, pts: 270_000, duration: 0, key: true, data: splice }));
  const found = packets.find(({ track }) => track.type === 'data');
  t.is(found?.pts, 270_000 + LATER * 90_000);
});

test('events written as MPEG-TS are read again', (t) => {
  const sent = codedPackets({ audio: 'AAC', seconds: 1 });
  const events: DataTrack[] = (['ID3v2', 'SCTE35'] as const).map((codec, i) => ({
    id: 10 + i,
    name: codec,
    type: 'data',
    codec,
    timebase: VIDEO_TIMEBASE,
    bypass: true,
  }));
  const muxer = new TsMuxer([...tracksOf(sent), ...events]);
  const { source, packets } = setUpTsSource(t, { timestampMode: 'Original' });
  const tag = Buffer.from('494433040000000000014242', 'hex');
  const splice = Buffer.from('/DAvAAAAAAAA///wFAVIAACPf+/+c2nALv4AUsz1AAAAAAAKAAhDVUVJAAABNWLbowo=', 'base64');
  for (const packet of sent) source.push(muxer.write(packet));
  for (const [i, data] of [tag, splice].entries())
    source.push(muxer.write({ track: events[i] as DataTrack, dts: 90_000, pts: 90_000, duration: 0, key: true, data }));
  t.deepEqual(
    packets.flatMap(({ track, data }) => (track.type === 'data' ? [[track.codec, data]] : [])),
    [
      ['ID3v2', tag],
      ['SCTE35', splice],
    ],
  );
});
