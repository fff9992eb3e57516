import test from 'ava';
import { Counters } from '../../../../src/core/counters.ts';
import type { Rendition } from '../../../../src/core/playlist.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import { OutputStream } from '../../../../src/core/output-stream.ts';
import type { Encoder, Track } from '../../../../src/core/track.ts';
import { defaultPlaylist, selections } from '../../../../src/publishers/webrtc/selection.ts';
import { isRoutable } from '../../../../src/webrtc/codecs.ts';
import { ladderPlaylist } from '../../../support/media/ladder.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

const OPUS = { codec: 'OPUS', config: undefined } as const;
const HIGH = videoTrack({ id: 0, name: 'high' });
const LOW = videoTrack({ id: 1, name: 'low' });
const VP8 = videoTrack({ id: 2, name: 'vp8', codec: 'VP8' });
const AV1 = [3, 4].map((id) => videoTrack({ id, name: `av1_${id}`, codec: 'AV1' }));
const H265 = videoTrack({ id: 5, name: 'h265', codec: 'H265' });
const SOUND = audioTrack({ id: 6, name: 'sound', ...OPUS });
const AAC = audioTrack({ id: 7, name: 'aac' });
const ENGLISH = audioTrack({ id: 8, name: 'voices', language: 'en', ...OPUS });
const GERMAN = audioTrack({ id: 9, name: 'voices', language: 'de', ...OPUS });

/** The names of what each codec's viewers can choose from. */
function choices(
  tracks: readonly Track[],
  renditions: readonly Rendition[],
  awaited: readonly Track[] = [],
  fallback = false,
) {
  const output = new OutputStream('stream', new InputStream('stream', { type: 'Rtmp', kind: 'rtmp' }, new Counters()));
  output.setTracks(tracks);
  output.setAwaited(awaited);
  const playlist = { ...ladderPlaylist([], { webrtcAudioOnlyFallback: fallback }), renditions };
  return selections(output, playlist);
}

const names = (found: ReturnType<typeof choices>) => found.map(({ renditions }) => renditions.map(({ name }) => name));
const both = (name: string, videoVariantName: string, audioVariantName = 'sound') => ({
  name,
  videoVariantName,
  audioVariantName,
});

test('each video codec has the renditions of its own, in the order of the playlist', (t) => {
  const renditions = [both('a', 'vp8'), both('b', 'high'), both('c', 'low'), both('d', 'h265')];
  const found = choices([HIGH, LOW, VP8, H265, SOUND], renditions);
  t.deepEqual(names(found), [['a'], ['b', 'c'], ['d']]);
  t.deepEqual(found[1]?.video, [HIGH, LOW]);
  t.deepEqual(found[1]?.audio, [SOUND]);
});

test('a codec without layers has the renditions of its first track', (t) => {
  const renditions = [both('a', 'av1_3'), both('b', 'av1_4'), both('c', 'av1_3', 'voices')];
  t.deepEqual(names(choices([...AV1, SOUND, ENGLISH], renditions)), [['a', 'c']]);
});

test('renditions of tracks that are not there and names that are taken are left out', (t) => {
  const renditions = [
    both('a', 'high'),
    both('a', 'low'),
    both('b', 'absent'),
    both('c', 'low', 'absent'),
    both('d', 'high', 'aac'),
  ];
  t.deepEqual(names(choices([HIGH, LOW, SOUND, AAC], renditions)), [['a']]);
  t.deepEqual(names(choices([HIGH, LOW, AAC], renditions)), [['a', 'c', 'd']], 'without sound where there is none');
  t.deepEqual(choices([AAC], renditions), []);
});

test('a rendition that an encoder is about to put out can be chosen, and one that it has failed at can not', (t) => {
  const encoder = (status: Encoder['status']): Encoder => ({ module: 'x264', status });
  const renditions = [both('a', 'high'), both('b', 'low'), both('c', 'other')];
  const awaited = [
    { ...LOW, encoder: encoder(undefined) },
    { ...LOW, id: 20, name: 'other', encoder: encoder('Failed') },
  ];
  t.deepEqual(names(choices([HIGH, SOUND], renditions, awaited)), [['a', 'b']]);
});

test('audio alone is there for viewers that want it, and where there is nothing else', (t) => {
  const renditions = [both('a', 'high'), { name: 'b', audioVariantName: 'sound' }];
  t.deepEqual(names(choices([HIGH, SOUND], renditions)), [['a']]);
  t.deepEqual(names(choices([HIGH, SOUND], renditions, [], true)), [['a', 'b']]);
  t.deepEqual(names(choices([SOUND], renditions)), [['a', 'b']]);
});

test('a rendition has that of several tracks of a variant that it names, or the first', (t) => {
  const renditions = [
    both('a', 'high', 'voices'),
    { ...both('b', 'high', 'voices'), audioIndex: 1 },
    { ...both('c', 'high', 'voices'), audioIndex: 2 },
  ];
  const [found] = choices([HIGH, GERMAN, ENGLISH], renditions);
  t.deepEqual(
    found?.renditions.map(({ name, audio }) => [name, audio?.language]),
    [
      ['a', 'en'],
      ['b', 'de'],
    ],
  );
});

test('renditions without names are numbered', (t) => {
  t.deepEqual(names(choices([HIGH, LOW, SOUND], [{ videoVariantName: 'high' }, { videoVariantName: 'low' }])), [
    ['0', '1'],
  ]);
});

test('G.711 and G.722 can be sent in their usual forms, and by default only where there is no Opus', (t) => {
  const telephone = (codec: 'PCMA' | 'PCMU' | 'G722', samplerate: number, channels = 1) =>
    audioTrack({ id: 4, name: 'telephone', codec, config: undefined, samplerate, channels });
  for (const track of [telephone('PCMA', 8000), telephone('PCMU', 8000), telephone('G722', 16_000)]) {
    t.true(isRoutable(track), track.codec);
    t.is(defaultPlaylist([track, HIGH, SOUND])?.renditions[0]?.audioVariantName, 'sound');
    t.is(defaultPlaylist([track, HIGH])?.renditions[0]?.audioVariantName, 'telephone');
  }
  for (const track of [telephone('PCMA', 16_000), telephone('PCMU', 8000, 2), telephone('G722', 8000)])
    t.false(isRoutable(track), track.codec);
});

test('all audio of a playlist is of one codec, Opus where there is any', (t) => {
  const telephone = audioTrack({ id: 4, name: 'telephone', ...OPUS, codec: 'PCMU', samplerate: 8000, channels: 1 });
  const renditions = [both('a', 'high', 'telephone'), both('b', 'high'), both('c', 'low')];
  const [mixed] = choices([HIGH, LOW, SOUND, telephone], renditions);
  t.deepEqual(mixed?.audio, [SOUND]);
  t.deepEqual(
    mixed?.renditions.map(({ name }) => name),
    ['b', 'c'],
  );
  const [alone] = choices([HIGH, LOW, telephone], renditions.slice(0, 1));
  t.deepEqual(alone?.audio, [telephone]);
});

test('H.265 is for those who have nothing else of a playlist, whatever its order', (t) => {
  const renditions = [both('a', 'h265'), both('b', 'high'), both('c', 'low', 'absent')];
  t.deepEqual(names(choices([H265, HIGH, LOW, SOUND], renditions)), [['b'], ['a']]);
  t.deepEqual(
    names(choices([H265, HIGH, SOUND], [both('a', 'h265'), both('b', 'high', 'absent')])),
    [['b'], ['a']],
    'what others get does not depend on it',
  );
  const [first, second] = choices([H265, SOUND], [both('a', 'h265')]);
  t.deepEqual([first?.video, second?.video], [[H265], []]);
});

test('a default playlist has H.265 alone where there is no other video, else as another rendition', (t) => {
  const of = (...tracks: readonly Track[]) =>
    defaultPlaylist(tracks)?.renditions.map(({ name, videoVariantName }) => [name, videoVariantName]);
  t.deepEqual(of(H265, SOUND), [['default', 'h265']]);
  t.deepEqual(of(H265, HIGH, SOUND), [
    ['default', 'high'],
    ['h265', 'h265'],
  ]);
  t.deepEqual(of(HIGH, SOUND), [['default', 'high']]);
  t.deepEqual(of(SOUND), [['default', undefined]]);
});
