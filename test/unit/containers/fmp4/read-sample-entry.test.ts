import test from 'ava';
import { readSampleEntry } from '../../../../src/containers/fmp4/read-sample-entry.ts';
import { sampleEntry, UnsupportedTrackError } from '../../../../src/containers/fmp4/sample-entry.ts';
import type { MediaTrack } from '../../../../src/core/track.ts';
import { AVC_HIGH, audioTrack, videoTrack } from '../../../support/media/packets.ts';
import { seeded } from '../../codecs/vectors.ts';

const LONG = Buffer.concat([Buffer.from('1190', 'hex'), Buffer.alloc(300)]);

const FLAC = Buffer.from('1200120000025800051b0bb802f00000bb80a316b305f13b13fe767b3d0d068f95bc', 'hex');
const FLAC_96 = Buffer.from('1000100000049c0008941770017000007080a60464d9430a1a0eee6bc12a36220000', 'hex');

const TRACKS: readonly MediaTrack[] = [
  videoTrack(),
  videoTrack({ config: AVC_HIGH, width: 1280, height: 720, inBandSets: true, sar: { num: 4, den: 3 } }),
  videoTrack({ codec: 'AV1', config: Buffer.from('81000c00', 'hex') }),
  videoTrack({ codec: 'VP9', config: Buffer.from('0014820202020000', 'hex') }),
  audioTrack(),
  audioTrack({ config: LONG, channels: 6 }),
  audioTrack({ codec: 'OPUS', config: Buffer.from('0002013800000bb80000000000'.slice(0, 22), 'hex') }),
  audioTrack({ codec: 'FLAC', config: FLAC, samplerate: 48_000, channels: 2 }),
  audioTrack({ codec: 'FLAC', config: FLAC_96, samplerate: 96_000, channels: 1 }),
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
