import { AAC_LC, AVC_BASELINE } from '../../../support/media/packets.ts';

const video = { framerate: 30, maxFramerate: 30, width: 640, height: 360, maxWidth: 640, maxHeight: 360 };
const sound = { samplerate: 48_000, sampleFormat: 8, layout: 3 };

/** Contents of the answer to describe, as docs/compatibility.md#ovt has them. */
export const DESCRIPTION = {
  version: 18,
  stream: {
    appName: '#default#app',
    streamName: 'talk',
    originStreamUUID: '0e3f5a8e-5a1c-4a57-93f2-6b6f0a2f5f10',
    playlists: [
      {
        name: 'both',
        fileName: 'master',
        options: {
          webrtcAutoAbr: true,
          hlsChunklistPathDepth: -1,
          enableTsPackaging: true,
          webrtcAudioOnlyFallback: false,
        },
        renditions: [
          { name: 'r', videoTrackName: 'video', videoIndexHint: -1, audioTrackName: 'audio', audioIndexHint: 0 },
        ],
      },
    ],
    tracks: [
      {
        id: 0,
        name: 'video',
        publicName: 'video',
        language: '',
        characteristics: '',
        codecId: 1,
        mediaType: 0,
        timebaseNum: 1,
        timebaseDen: 90_000,
        bitrate: 2_000_000,
        startFrameTime: 0,
        lastFrameTime: 0,
        videoTrack: video,
        audioTrack: { samplerate: 0, sampleFormat: -1, layout: 0 },
        decoderConfig: AVC_BASELINE.toString('base64'),
      },
      {
        id: 1,
        name: 'audio',
        publicName: 'audio',
        language: 'en',
        characteristics: 'public.accessibility',
        codecId: 7,
        mediaType: 1,
        timebaseNum: 1,
        timebaseDen: 48_000,
        bitrate: 128_000,
        startFrameTime: 0,
        lastFrameTime: 0,
        videoTrack: { framerate: 0, maxFramerate: 0, width: 0, height: 0, maxWidth: 0, maxHeight: 0 },
        audioTrack: sound,
        decoderConfig: AAC_LC.toString('base64'),
      },
    ],
  },
};
