import test from 'ava';
import { MILLISECONDS } from '../../../../src/core/timebase.ts';
import { sameFormat, type MediaTrack } from '../../../../src/core/track.ts';
import { indexedTrack } from '../../../../src/recording/finished/entry.ts';
import { AAC_SSR, audioTrack, AVC_HIGH, dataTrack, videoTrack } from '../../../support/media/packets.ts';

const TRACKS: readonly MediaTrack[] = [
  videoTrack(),
  videoTrack({ id: 3, name: 'other', bitrate: 5, framerate: 25, inBandSets: true }),
  videoTrack({ config: AVC_HIGH }),
  videoTrack({ codec: 'H265' }),
  videoTrack({ width: 1280 }),
  videoTrack({ height: 361 }),
  videoTrack({ timebase: MILLISECONDS }),
  videoTrack({ sar: { num: 4, den: 3 } }),
  videoTrack({ sar: { num: 8, den: 6 } }),
  (({ config: _, ...track }) => track)(videoTrack()),
  videoTrack({ config: Buffer.alloc(0) }),
  audioTrack(),
  audioTrack({ bitrate: 96_000 }),
  audioTrack({ config: AAC_SSR }),
  audioTrack({ channels: 1 }),
  audioTrack({ samplerate: 44_100 }),
  audioTrack({ codec: 'OPUS' }),
];

test('tracks in the index have the same digest where one goes on with the other', (t) => {
  for (const one of TRACKS)
    for (const other of TRACKS)
      t.is(
        indexedTrack(one).format === indexedTrack(other).format,
        sameFormat(one, other),
        `${one.name} ${other.name}`,
      );
  t.regex(indexedTrack(videoTrack()).format ?? '', /^[\w-]{16}$/);
  t.deepEqual(indexedTrack(dataTrack()), { type: 'data', codec: 'ID3v2' });
});
