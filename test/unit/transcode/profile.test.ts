import test from 'ava';
import { OutputProfile } from '../../../src/config/elements/output-profile.ts';
import type { OutputProfileConfig } from '../../../src/config/model.ts';
import { readConfig } from '../../../src/config/read.ts';
import type { AudioTrack } from '../../../src/core/track.ts';
import { outputName, planTracks, profilePlaylists } from '../../../src/transcode/profile.ts';
import { AUDIO, VIDEO } from '../core/support.ts';

function profile(json: object): OutputProfileConfig {
  const reading = readConfig(OutputProfile, { name: 'p', outputStreamName: '${OriginStreamName}_o', ...json });
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  return reading.config as OutputProfileConfig;
}

const SOUND = { name: 'sound', codec: 'aac', bitrate: 128_000, samplerate: 48_000, channel: 2 };
const bypasses = (input: AudioTrack, bypassIfMatch: object, encode: object = SOUND): boolean => {
  const { tracks, encoded } = planTracks(profile({ encodes: { audios: [{ ...encode, bypassIfMatch }] } }), [input]);
  return tracks.length === 1 && encoded.length === 0;
};

test('the macro stands for the name of the input stream', (t) => {
  t.is(outputName(profile({ encodes: { videos: [{ name: 'v', bypass: true }] } }), 'live'), 'live_o');
});

test('a stream name is taken as it is, patterns of replacement included', (t) => {
  const name = '$& $$ $` $\' ${OriginStreamName}';
  t.is(outputName(profile({ encodes: { videos: [{ name: 'v', bypass: true }] } }), name), `${name}_o`);
});

test('a bypassed encode takes every track of its kind, under keys that differ', (t) => {
  const second: AudioTrack = { ...AUDIO, id: 2 };
  const both = profile({
    encodes: { videos: [{ name: 'picture', bypass: true }], audios: [{ name: 'sound', bypass: true }] },
  });
  const { tracks, encoded } = planTracks(both, [VIDEO, AUDIO, second]);
  t.deepEqual(tracks.map(({ from, variantName }) => [from.id, variantName]), [[0, 'picture'], [1, 'sound'], [2, 'sound']]);
  t.is(new Set(tracks.map(({ key }) => key)).size, 3);
  t.deepEqual(encoded, []);
});

test('an encode without a bypass rule needs an encoder', (t) => {
  const { tracks, encoded } = planTracks(profile({ encodes: { audios: [SOUND] } }), [AUDIO]);
  t.deepEqual(tracks, []);
  t.deepEqual(encoded, ['sound']);
});

test('an encode without an input of its kind makes nothing', (t) => {
  t.deepEqual(planTracks(profile({ encodes: { audios: [SOUND] } }), [VIDEO]), { tracks: [], encoded: [] });
});

test('BypassIfMatch: every listed condition must hold', (t) => {
  t.true(bypasses(AUDIO, { codec: 'eq' }));
  t.true(bypasses(AUDIO, { codec: 'eq' }, { ...SOUND, codec: 'AAC' }), 'codec names know no case');
  t.false(bypasses({ ...AUDIO, codec: 'OPUS' }, { codec: 'eq' }));
  t.true(bypasses(AUDIO, { codec: 'eq', samplerate: 'eq' }));
  t.false(bypasses({ ...AUDIO, samplerate: 44_100 }, { codec: 'eq', samplerate: 'eq' }));
  t.true(bypasses({ ...AUDIO, channels: 1 }, { channel: 'lte' }));
  t.false(bypasses({ ...AUDIO, channels: 6 }, { channel: 'lte' }));
  t.true(bypasses({ ...AUDIO, channels: 6 }, { channel: 'gte' }));
  t.false(bypasses({ ...AUDIO, channels: 1 }, { channel: 'gte' }));
});

test('BypassIfMatch of a picture compares size, frame rate and aspect', (t) => {
  const encode = { name: 'v', codec: 'h264', bitrate: 1_000_000, width: 640, height: 360, framerate: 30 };
  const plan = (bypassIfMatch: object, input: object) =>
    planTracks(profile({ encodes: { videos: [{ ...encode, bypassIfMatch }] } }), [{ ...VIDEO, ...input }]).tracks.length;
  t.is(plan({ width: 'lte', height: 'lte' }, { width: 640, height: 360 }), 1);
  t.is(plan({ width: 'lte', height: 'lte' }, { width: 1280, height: 360 }), 0);
  t.is(plan({ framerate: 'lte' }, { framerate: 25 }), 1);
  t.is(plan({ framerate: 'lte' }, { framerate: 60 }), 0);
  t.is(plan({ sar: 'eq' }, { width: 1920, height: 1080 }), 1);
  t.is(plan({ sar: 'eq' }, { width: 640, height: 480 }), 0);
});

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
