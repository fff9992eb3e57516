import test from 'ava';
import type { Playlist } from '../../../../src/core/playlist.ts';
import type { PlayerAbility } from '../../../../src/protocols/rtmp/play.ts';
import { chosenForTs, chosenTracks } from '../../../../src/publishers/flv/choice.ts';
import { audioTrack, videoTrack } from '../../../support/rtmp/played-tracks.ts';

const OPTIONS = {
  webrtcAutoAbr: true,
  webrtcAudioOnlyFallback: false,
  hlsChunklistPathDepth: -1,
  enableTsPackaging: false,
};
const CLASSIC: PlayerAbility = { fourCcs: new Set(), multitrack: false };
const MODERN: PlayerAbility = { fourCcs: new Set(['hvc1', 'Opus', 'avc1', 'mp4a']), multitrack: false };
const MANY: PlayerAbility = { ...MODERN, multitrack: true };

const HEVC = videoTrack({ id: 0, name: 'hevc', codec: 'H265' });
const HIGH = videoTrack({ id: 1, name: 'high' });
const LOW = videoTrack({ id: 2, name: 'low' });
const OPUS = audioTrack({ id: 3, name: 'opus', codec: 'OPUS' });
const AAC = audioTrack({ id: 4, name: 'aac' });
const ALL = [HEVC, HIGH, LOW, OPUS, AAC];

const playlist = (...renditions: Playlist['renditions']): Playlist => ({ fileName: 'p', options: OPTIONS, renditions });
const rendition = (videoVariantName: string, audioVariantName: string) => ({ videoVariantName, audioVariantName });

test('without a playlist: the first video that the player takes, and AAC', (t) => {
  t.deepEqual(chosenTracks(ALL, undefined, CLASSIC), [HIGH, AAC]);
  t.deepEqual(chosenTracks(ALL, undefined, MODERN), [HEVC, AAC]);
  t.deepEqual(chosenTracks([HEVC, OPUS], undefined, MODERN), [HEVC, OPUS]);
});

test('tracks that a classic player does not take are left out', (t) => {
  t.deepEqual(chosenTracks([HIGH, OPUS], undefined, CLASSIC), [HIGH]);
  t.deepEqual(chosenTracks([HEVC, OPUS], undefined, CLASSIC), []);
});

test('of a playlist: the first rendition whose video is taken', (t) => {
  const named = playlist(rendition('hevc', 'opus'), rendition('low', 'aac'), rendition('high', 'aac'));
  t.deepEqual(chosenTracks(ALL, named, CLASSIC), [LOW, AAC]);
  t.deepEqual(chosenTracks(ALL, named, MODERN), [HEVC, OPUS]);
  t.deepEqual(chosenTracks(ALL, playlist({ audioVariantName: 'aac' }), CLASSIC), [AAC]);
});

test('an index of a rendition counts the tracks of its variant', (t) => {
  const second = audioTrack({ id: 9, name: 'aac' });
  const named = playlist({ ...rendition('high', 'aac'), audioIndex: 1 });
  t.deepEqual(chosenTracks([...ALL, second], named, CLASSIC), [HIGH, second]);
});

test('a player of several tracks gets all of the stream or of the playlist, the default ones first', (t) => {
  t.deepEqual(chosenTracks(ALL, undefined, MANY), [HEVC, HIGH, LOW, AAC, OPUS]);
  t.deepEqual(chosenTracks(ALL, playlist(rendition('low', 'opus'), rendition('high', 'opus')), MANY), [
    LOW,
    HIGH,
    OPUS,
  ]);
});

test('a player of several tracks gets at most 16 of a kind', (t) => {
  const many = Array.from({ length: 40 }, (_, id) => videoTrack({ id, name: `v${id}` }));
  t.is(chosenTracks(many, undefined, MANY).length, 16);
});

test('a track waits for its configuration', (t) => {
  const { config: _, ...unready } = HIGH;
  t.deepEqual(chosenTracks([unready, AAC], undefined, CLASSIC), [AAC]);
});

test('a player that cannot say what it takes gets H264 and AAC where the stream has them, and else what there is', (t) => {
  const unasked: PlayerAbility = { ...MODERN, isAssumed: true };
  t.deepEqual(chosenTracks(ALL, undefined, unasked), [HIGH, AAC]);
  t.deepEqual(chosenTracks([HEVC, OPUS], undefined, unasked), [HEVC, OPUS]);
  t.deepEqual(chosenTracks(ALL, playlist(rendition('hevc', 'opus'), rendition('low', 'aac')), unasked), [HEVC, OPUS]);
});

test('MPEG-TS has one track of each kind of those that it can carry', (t) => {
  const vp8 = videoTrack({ id: 7, name: 'vp8', codec: 'VP8' });
  t.deepEqual(chosenForTs([vp8, HEVC, HIGH, OPUS, AAC], undefined), [HIGH, AAC]);
  t.deepEqual(chosenForTs([vp8, HEVC, AAC], playlist(rendition('vp8', 'aac'), rendition('hevc', 'aac'))), [HEVC, AAC]);
  t.deepEqual(chosenForTs([vp8], undefined), []);
});
