import test from 'ava';
import { containerOf } from '../../../src/recording/container.ts';
import { audioTrack, videoTrack } from '../../support/media/packets.ts';

test('a track that a container cannot carry is named in an objection', (t) => {
  const objections = (path: string) =>
    [
      videoTrack({ codec: 'VP8' }),
      videoTrack({ codec: 'VP9' }),
      videoTrack(),
      audioTrack(),
      audioTrack({ codec: 'OPUS', config: undefined }),
    ]
      .map((track) => containerOf(path).objection(track))
      .filter(Boolean);
  // there is no mapping of VP8 and VP9 that players agree on: ffmpeg writes private data, and reads no video from it
  t.deepEqual(objections('a.ts'), ['VP8 cannot be carried in MPEG-TS', 'VP9 cannot be carried in MPEG-TS']);
  t.deepEqual(objections('a.webm'), ['H264 cannot be carried in WebM', 'AAC cannot be carried in WebM']);
  t.deepEqual(objections('a.MP4'), [
    'VP8 cannot be carried in MP4',
    'VP9 cannot be carried in MP4',
    'OPUS track without configuration',
  ]);
});
