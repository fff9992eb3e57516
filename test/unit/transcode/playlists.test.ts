import test from 'ava';
import type { AudioTrack, Track, VideoTrack } from '../../../src/core/track.ts';
import { profilePlaylist } from '../../../src/transcode/playlists.ts';
import { AUDIO, VIDEO } from '../core/support.ts';
import { profile } from './support.ts';

const playlistOf = (playlist: object, tracks: readonly Track[] = []) => {
  const {
    playlists: [config],
  } = profile({
    encodes: { videos: [{ name: 'v', bypass: true }] },
    playlists: [{ fileName: 'all', ...playlist }],
  });
  if (config === undefined) throw new Error('no playlist');
  return profilePlaylist(config, tracks);
};

test('playlists come in the form publishers read', (t) => {
  const playlist = playlistOf({
    name: 'all',
    options: { webRtcAutoAbr: false, hlsChunklistPathDepth: 0 },
    renditions: [{ name: 'r', video: 'v', audio: 'a' }],
  });
  t.like(playlist, {
    name: 'all',
    fileName: 'all',
    options: {
      webrtcAutoAbr: false,
      hlsChunklistPathDepth: 0,
      enableTsPackaging: false,
      webrtcAudioOnlyFallback: false,
    },
  });
  t.deepEqual(playlist.renditions, [{ name: 'r', videoVariantName: 'v', audioVariantName: 'a' }]);
});

test('an index hint chooses one of several tracks of a variant', (t) => {
  const { renditions } = playlistOf({ renditions: [{ video: 'v', audio: 'a', videoIndexHint: 0, audioIndexHint: 1 }] });
  t.deepEqual(renditions, [
    { name: undefined, videoVariantName: 'v', audioVariantName: 'a', videoIndex: 0, audioIndex: 1 },
  ]);
});

let id = 0;
const video = (name: string, height: number, more: Partial<VideoTrack> = {}): VideoTrack => ({
  ...VIDEO,
  id: id++,
  name,
  width: (height * 16) / 9,
  height,
  framerate: 30,
  bitrate: height * 1000,
  ...more,
});
const audio = (name: string, more: Partial<AudioTrack> = {}): AudioTrack => ({
  ...AUDIO,
  id: id++,
  name,
  bitrate: 128_000,
  ...more,
});

const TRACKS = [
  video('source', 1080, { bypass: true }),
  video('hd', 720),
  video('sd', 360, { framerate: 15 }),
  audio('opus', { codec: 'OPUS' }),
  audio('aac', { samplerate: 44_100, channels: 1, bypass: true }),
];
const expanded = (template: object, tracks: readonly Track[] = TRACKS) =>
  playlistOf({ rendition_templates: [template] }, tracks).renditions.map(
    ({ name, videoVariantName: v, audioVariantName: a, videoIndex, audioIndex }) => [
      name,
      v,
      a,
      videoIndex,
      audioIndex,
    ],
  );
const heights = (template: object) => expanded({ name: '${Height}', video_template: template }).map(([name]) => name);
const sounds = (template: object) => expanded({ name: 'x', audio_template: template }).map(([, , name]) => name);

test('a template makes a rendition of every pair that fits', (t) => {
  t.deepEqual(
    expanded({
      name: '${Height}p',
      video_template: { encodingType: 'encoded' },
      audio_template: { variantName: 'opus' },
    }),
    [
      ['720p', 'hd', 'opus', undefined, undefined],
      ['360p', 'sd', 'opus', undefined, undefined],
    ],
  );
  t.deepEqual(expanded({ name: '${Height}p', video_template: { maxHeight: 360 }, audio_template: {} }), [
    ['360p', 'sd', 'opus', undefined, undefined],
    ['360p_2', 'sd', 'aac', undefined, undefined],
  ]);
});

test('listed renditions come first, and a template follows the tracks', (t) => {
  const playlist = {
    renditions: [{ name: 'r', video: 'hd' }],
    rendition_templates: [{ name: '${Height}', video_template: {} }],
  };
  t.deepEqual(
    playlistOf(playlist).renditions.map(({ name }) => name),
    ['r'],
  );
  t.deepEqual(
    playlistOf(playlist, TRACKS).renditions.map(({ name }) => name),
    ['r', '1080', '720', '360'],
  );
});

test('macros give the tracks, and other words stay', (t) => {
  const name = '${Width}x${Height}@${Framerate} ${Bitrate} ${Samplerate}/${Channel} ${toString} $& ${Else}';
  t.is(
    expanded({ name, video_template: { variantName: 'sd' }, audio_template: { variantName: 'aac' } })[0]?.[0],
    '640x360@15 360000 44100/1 ${toString} $& ${Else}',
  );
  t.is(expanded({ name: '${Bitrate} ${Height}', audio_template: { variantName: 'opus' } })[0]?.[0], '128000 ${Height}');
});

test('bounds include their ends, and a track has to keep them all', (t) => {
  t.deepEqual(heights({}), ['1080', '720', '360']);
  t.deepEqual(heights({ minHeight: 360, maxHeight: 720 }), ['720', '360']);
  t.deepEqual(heights({ minWidth: 1281 }), ['1080']);
  t.deepEqual(heights({ maxWidth: 640 }), ['360']);
  t.deepEqual(heights({ minFramerate: 20, maxFramerate: 30 }), ['1080', '720']);
  t.deepEqual(heights({ minBitrate: 400_000, maxBitrate: 720_000 }), ['720']);
  t.deepEqual(heights({ encodingType: 'bypassed' }), ['1080']);
  t.deepEqual(heights({ encodingType: 'encoded', minHeight: 800 }), []);
  t.deepEqual(sounds({ minSamplerate: 48_000 }), ['opus']);
  t.deepEqual(sounds({ maxSamplerate: 44_100 }), ['aac']);
  t.deepEqual(sounds({ minChannel: 2 }), ['opus']);
  t.deepEqual(sounds({ maxChannel: 1 }), ['aac']);
  t.deepEqual(sounds({ maxBitrate: 100_000 }), []);
});

test('a rendition without fitting audio is video alone, and one without video is audio', (t) => {
  const both = { name: 'x', video_template: {}, audio_template: {} };
  t.deepEqual(expanded(both, [video('hd', 720)]), [['x', 'hd', undefined, undefined, undefined]]);
  t.deepEqual(expanded(both, [audio('aac')]), [['x', undefined, 'aac', undefined, undefined]]);
  t.deepEqual(expanded(both, []), []);
});

test('languages of one audio are one rendition; some of them, and videos of one name, are distinguished', (t) => {
  const languages = [audio('aac', { language: 'eng' }), audio('aac', { language: 'fra', channels: 1 })];
  t.deepEqual(expanded({ name: 'a', audio_template: {} }, languages), [['a', undefined, 'aac', undefined, undefined]]);
  t.deepEqual(expanded({ name: 'a', audio_template: { maxChannel: 1 } }, languages), [
    ['a', undefined, 'aac', undefined, 1],
  ]);
  t.deepEqual(expanded({ name: '${Height}', video_template: {} }, [video('v', 720), video('v', 360)]), [
    ['720', 'v', undefined, 0, undefined],
    ['360', 'v', undefined, 1, undefined],
  ]);
});
