import test from 'ava';
import { profilePlaylists } from '../../../src/transcode/playlists.ts';
import { profile } from './support.ts';

test('playlists come in the form publishers read', (t) => {
  const [playlist] = profilePlaylists(
    profile({
      encodes: { videos: [{ name: 'v', bypass: true }] },
      playlists: [
        {
          name: 'all', fileName: 'all', options: { webRtcAutoAbr: false, hlsChunklistPathDepth: 0 },
          renditions: [{ name: 'r', video: 'v', audio: 'a' }],
        },
      ],
    }),
  );
  t.like(playlist, {
    name: 'all', fileName: 'all',
    options: { webrtcAutoAbr: false, hlsChunklistPathDepth: 0, enableTsPackaging: false, webrtcAudioOnlyFallback: false },
  });
  t.deepEqual(playlist?.renditions, [{ name: 'r', videoVariantName: 'v', audioVariantName: 'a' }]);
});
