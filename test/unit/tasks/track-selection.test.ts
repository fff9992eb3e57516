import test from 'ava';
import type { Track } from '../../../src/core/track.ts';
import { selectTracks } from '../../../src/tasks/track-selection.ts';
import { AUDIO, VIDEO } from '../../support/server/live.ts';

const TRACKS: readonly Track[] = [
  { ...VIDEO, id: 0, name: 'high', codec: 'VP8' } as Track,
  { ...VIDEO, id: 1, name: 'low' },
  { ...VIDEO, id: 2, name: 'low' },
  { ...AUDIO, id: 3, name: 'opus', codec: 'OPUS' } as Track,
  { ...AUDIO, id: 4, name: 'a:1' },
  { id: 5, name: 'Data', type: 'data', codec: 'ID3v2', timebase: { num: 1, den: 1000 }, bypass: true },
];

const all = () => undefined;
const noEvents = ({ type }: Track) => (type === 'data' ? 'no events here' : undefined);
const likeRtmp = ({ codec }: Track) =>
  codec === 'H264' || codec === 'AAC' ? undefined : `${codec} cannot be carried in FLV`;

const likeWebm = ({ codec }: Track) => (codec === 'OPUS' ? undefined : 'not here');
const likeMp4 = ({ codec }: Track) => (codec === 'OPUS' ? 'not here' : undefined);

function select(trackIds: number[], variantNames: string[], objection: (track: Track) => string | undefined = all) {
  const { tracks, warnings } = selectTracks(TRACKS, { trackIds, variantNames }, objection);
  return { ids: tracks.map(({ id }) => id), warnings };
}

test('the first track of each kind that can be carried is taken without a choice', (t) => {
  t.deepEqual(select([], []), { ids: [0, 3, 5], warnings: [] });
  t.deepEqual(select([], [], likeRtmp), { ids: [1, 4], warnings: [] });
});

test("the source's own track comes before one that is encoded, and what was taken before both", (t) => {
  const video = { ...VIDEO, id: 0 };
  const small = { ...VIDEO, id: 1, name: 'small', bypass: false } as Track;
  const opus = { ...AUDIO, id: 2, name: 'opus', codec: 'OPUS', bypass: false } as Track;
  const aac = { ...AUDIO, id: 3, name: 'aac' };
  const none = { trackIds: [], variantNames: [] };
  const ids = (tracks: readonly Track[], before: readonly Track[] = [], objection = all as typeof likeWebm) =>
    selectTracks(tracks, none, objection, before).tracks.map(({ id }) => id);
  t.deepEqual(ids([small, video, opus, aac]), [0, 3]);
  t.deepEqual(ids([small, opus]), [1, 2]);
  t.deepEqual(ids([video, opus, aac], [], likeWebm), [2]);
  t.deepEqual(ids([small, video, opus, aac], [small, opus]), [1, 2]);
  t.deepEqual(ids([small, video, opus, aac], [video, aac]), [0, 3]);
  t.deepEqual(ids([video, opus, aac], [small, opus], likeMp4), [0, 3], 'it cannot be carried any more');
  t.deepEqual(ids([video, aac], [small, opus]), [0, 3], 'it is gone');
  t.deepEqual(ids([video, { ...aac, id: 2 }, { ...aac, id: 4 }], [video, opus]), [0, 2], 'it has changed');
});

test('a kind of which no track can be carried is warned of', (t) => {
  const { ids, warnings } = select([], [], ({ type }) => (type === 'audio' ? 'no audio here' : undefined));
  t.deepEqual(ids, [0, 5]);
  t.deepEqual(warnings, ['track 3 (opus) is left out: no audio here', 'track 4 (a:1) is left out: no audio here']);
});

test('ids and names add up, in the order of the stream', (t) => {
  t.deepEqual(select([3, 1], ['high'], noEvents), { ids: [0, 1, 3], warnings: [] });
});

test('a name takes all tracks of it, with an index one of them', (t) => {
  t.deepEqual(select([], ['low'], noEvents).ids, [1, 2]);
  t.deepEqual(select([], ['low:1'], noEvents).ids, [2]);
  t.deepEqual(select([], ['low:2']), { ids: [], warnings: ['the stream has no track named low:2'] });
  t.deepEqual(select([], ['a:1'], noEvents).ids, [4]);
});

test('a track that is missing or cannot be carried is left out with a warning', (t) => {
  t.deepEqual(select([0, 9], ['none', 'low'], likeRtmp), {
    ids: [1, 2],
    warnings: [
      'the stream has no track 9',
      'the stream has no track named none',
      'track 0 (high) is left out: VP8 cannot be carried in FLV',
    ],
  });
});

test('events go with the tracks that they belong beside, and are left out silently', (t) => {
  t.deepEqual(select([1], []), { ids: [1, 5], warnings: [] });
  t.deepEqual(select([1], [], noEvents), { ids: [1], warnings: [] });
  t.deepEqual(select([1, 5], [], noEvents), {
    ids: [1],
    warnings: ['track 5 (Data) is left out: no events here'],
  });
  const forAudio = { ...TRACKS[5], target: 'audio' } as Track;
  const more = { ...forAudio, id: 6, codec: 'SCTE35', target: undefined } as Track;
  const tracks = [...TRACKS.slice(0, 5), forAudio, more];
  const ids = (trackIds: number[]) =>
    selectTracks(tracks, { trackIds, variantNames: [] }, all).tracks.map(({ id }) => id);
  t.deepEqual(ids([]), [0, 3, 5, 6]);
  t.deepEqual(ids([1]), [1, 6]);
  t.deepEqual(ids([]).slice(2), [5, 6], 'not the first alone');
});
