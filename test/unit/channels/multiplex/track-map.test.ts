import test from 'ava';
import { mapTracks, missingTrack, TrackIds } from '../../../../src/channels/multiplex/track-map.ts';
import { source, trackItem } from '../../../support/channels/multiplex.ts';
import { audioTrack, dataTrack, videoTrack } from '../../../support/media/packets.ts';

const VIDEO = videoTrack({ id: 3, name: '720p', source: 0, bitrate: 2_000_000, keyFrameInterval: 60, language: 'en' });
const ENGLISH = audioTrack({ id: 4, name: 'aac', language: 'en' });
const FRENCH = audioTrack({ id: 5, name: 'aac', language: 'fr' });
const TRACKS = [VIDEO, ENGLISH, FRENCH, dataTrack()];

test('only named tracks pass, under their new names and with what is declared for them', (t) => {
  const ids = new TrackIds();
  const spec = source('cam', [
    trackItem('720p', 'main', { bitrateConf: 5_000_000, framerateConf: 25, language: 'de' }),
    trackItem('aac', 'sound', { publicName: 'Commentary', characteristics: 'public.accessibility.describes-video' }),
  ]);
  const mapped = mapTracks(spec, TRACKS, (item, id) => ids.of(0, item, id));
  t.deepEqual(
    mapped.map(({ from }) => from),
    [VIDEO, ENGLISH, FRENCH],
  );
  const [main, english, french] = mapped.map(({ to }) => to);
  const { source: _source, ...video } = VIDEO;
  t.deepEqual<unknown, unknown>(main, {
    ...video,
    id: 0,
    name: 'main',
    bypass: false,
    bitrate: 5_000_000,
    framerate: 25,
    keyFrameInterval: 0,
    language: 'de',
  });
  t.like(english, { id: 1, name: 'sound', publicName: 'Commentary', language: 'en', bitrate: 0 });
  t.like(french, { id: 2, name: 'sound', language: 'fr', characteristics: 'public.accessibility.describes-video' });
});

test('an audio index names one of several tracks, and nothing else does', (t) => {
  const named = (audioIndex: number) => source('cam', [trackItem('aac', 'sound', { audioIndex })]);
  const from = (audioIndex: number) => mapTracks(named(audioIndex), TRACKS, (_item, id) => id).map((one) => one.from);
  t.deepEqual(from(-1), [ENGLISH, FRENCH]);
  t.deepEqual(from(0), [ENGLISH]);
  t.deepEqual(from(1), [FRENCH]);
  t.deepEqual(from(2), []);
  t.is(missingTrack(named(2), TRACKS), 'aac with audio index 2');
  t.is(missingTrack(named(1), TRACKS), undefined);
  t.is(missingTrack(source('cam', [trackItem('720p', 'a'), trackItem('1080p', 'b')]), TRACKS), '1080p');
});

test('events are not waited for: their track is there from the first one on', (t) => {
  const spec = source('cam', [trackItem('720p', 'main'), trackItem('Data', 'cues')]);
  t.is(missingTrack(spec, [VIDEO]), undefined);
  t.is(missingTrack(spec, []), '720p');
  const [, cues] = mapTracks(spec, TRACKS, (item) => item);
  t.like(cues?.to, { id: 1, name: 'cues', type: 'data', codec: 'ID3v2' });
});

test('ids are unique in a channel and stay; a track that has not changed stays the same object', (t) => {
  const ids = new TrackIds();
  const spec = source('cam', [trackItem('aac', 'one'), trackItem('aac', 'two')]);
  const map = (tracks: typeof TRACKS, place: number, known = mapTracks(spec, [], () => 0)) =>
    mapTracks(spec, tracks, (item, id) => ids.of(place, item, id), known);
  const first = map([ENGLISH], 0);
  const other = map([ENGLISH], 1);
  const changed = audioTrack({ ...ENGLISH, samplerate: 44_100 });
  const next = map([FRENCH, changed], 0, first);
  t.is(new Set([...first, ...other, ...next].map(({ to }) => to.id)).size, 6);
  t.is(next.find(({ from }) => from === changed)?.to.id, first[0]?.to.id);
  t.not(next.find(({ from }) => from === changed)?.to, first[0]?.to);
  t.is(map([ENGLISH], 0, first)[0]?.to, first[0]?.to);
});
