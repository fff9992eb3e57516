import test from 'ava';
import { readSampleEntry } from '../../../../src/containers/fmp4/read-sample-entry.ts';
import { sampleEntry, UnsupportedTrackError } from '../../../../src/containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../../../../src/core/track.ts';
import { AVC_HIGH, audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { seeded } from '../../codecs/vectors.ts';

const LONG = Buffer.concat([Buffer.from('1190', 'hex'), Buffer.alloc(300)]);

const TRACKS: readonly MediaTrack[] = [
  videoTrack(),
  videoTrack({ config: AVC_HIGH, width: 1280, height: 720, inBandSets: true, sar: { num: 4, den: 3 } }),
  videoTrack({ codec: 'AV1', config: Buffer.from('81000c00', 'hex') }),
  videoTrack({ codec: 'VP9', config: Buffer.from('0014820202020000', 'hex') }),
  audioTrack(),
  audioTrack({ config: LONG, channels: 6 }),
  audioTrack({ codec: 'OPUS', config: Buffer.from('0002013800000bb80000000000'.slice(0, 22), 'hex') }),
  audioTrack({ codec: 'MP3', config: undefined, samplerate: 44_100 }),
  audioTrack({ codec: 'MP3', config: undefined, samplerate: 22_050, channels: 1 }),
];

for (const track of TRACKS)
  test(`the sample entry of ${track.codec}, ${Object.values(track).slice(-4).join()}, is read as it was written`, (t) => {
    const read = readSampleEntry(sampleEntry(track));
    for (const [name, value] of Object.entries(read)) t.deepEqual(value, track[name as keyof MediaTrack], name);
    t.is(read.config === undefined, track.config === undefined);
    t.is('inBandSets' in read, 'inBandSets' in track);
  });

test('sample entries that are damaged or of other codecs are refused', (t) => {
  const random = seeded(3);
  for (const track of TRACKS) {
    const whole = sampleEntry(track);
    for (let i = 0; i < 200; i++) {
      const bytes = Buffer.from(whole.subarray(0, Math.ceil(random() * whole.length)));
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      try {
        readSampleEntry(bytes);
      } catch (error) {
        t.true(error instanceof RangeError || error instanceof UnsupportedTrackError, String(error));
      }
    }
  }
  t.throws(() => readSampleEntry(Buffer.from(`\0\0\0\x40mp4v${'\0'.repeat(56)}`)), {
    instanceOf: UnsupportedTrackError,
  });
});
