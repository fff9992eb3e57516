import test from 'ava';
import { problemText } from '../../../../src/config/names.ts';
import { checkMultiplex } from '../../../../src/channels/multiplex/check.ts';
import { readMultiplexSpec } from '../../../../src/channels/multiplex/spec.ts';

const TRACK = { sourceTrackName: 'bypass_video', newTrackName: 'tv1_video' };
const SOURCE = { name: 'tv1', url: 'stream://default/app/tv1', trackMap: [TRACK] };
const PLAYLIST = { name: 'LLHLS ABR', fileName: 'abr', renditions: [{ name: '1080p', video: 'tv1_video' }] };

function channel(changes: object = {}): object {
  return { outputStream: { name: 'mux' }, sourceStreams: [SOURCE], ...changes };
}

test('elements of a multiplex channel that are not given have their defaults', (t) => {
  const checked = checkMultiplex(channel({ playlists: [PLAYLIST] }));
  t.deepEqual(checked, {
    ok: true,
    warnings: [],
    value: {
      name: 'mux',
      spec: {
        bypassTranscoder: true,
        sourceStreams: [{ ...SOURCE, trackMap: [{ ...TRACK, bitrateConf: 0, framerateConf: 0, audioIndex: -1 }] }],
        playlists: [
          {
            name: 'LLHLS ABR',
            fileName: 'abr',
            options: {
              webrtcAutoAbr: false,
              webrtcAudioOnlyFallback: false,
              hlsChunklistPathDepth: -1,
              enableTsPackaging: false,
            },
            renditions: [{ name: '1080p', video: 'tv1_video', videoIndexHint: -1, audioIndexHint: -1 }],
          },
        ],
      },
    },
  });
  t.true(checked.ok && readMultiplexSpec(checked.value.spec) !== undefined);
});

test('options of playlists are kept', (t) => {
  const options = { webrtcAutoAbr: true, hlsChunklistPathDepth: 0, enableTsPackaging: true };
  const checked = checkMultiplex(channel({ playlists: [{ ...PLAYLIST, name: undefined, options }] }));
  t.false(checked.ok);
  const { name: _, ...unnamed } = PLAYLIST;
  const right = checkMultiplex(channel({ playlists: [{ ...unnamed, options }] }));
  t.like(right.ok && right.value.spec.playlists[0], { name: 'abr', options });
});

test('each wrong value of a multiplex channel is named by its element', (t) => {
  const cases: readonly (readonly [unknown, string])[] = [
    [
      channel({ outputStream: { name: '' } }),
      'outputStream.name: "" is not a name of a stream (without / : ? #, of at most 255 bytes)',
    ],
    [{ outputStream: { name: 'mux' } }, 'sourceStreams: is missing'],
    [channel({ sourceStreams: [] }), 'sourceStreams: is missing'],
    [channel({ sourceStreams: [{ ...SOURCE, trackMap: [] }] }), 'sourceStreams[0].trackMap: is missing'],
    [
      channel({ sourceStreams: [{ ...SOURCE, url: 'rtmp://a/b/c' }] }),
      'sourceStreams[0].url: "rtmp://a/b/c" is not stream://vhost/app/stream',
    ],
    [channel({ sourceStreams: [SOURCE, SOURCE] }), 'sourceStreams[1].name: "tv1" is given twice'],
    [
      channel({ sourceStreams: [{ ...SOURCE, trackMap: [{ ...TRACK, audioIndex: -2 }] }] }),
      'sourceStreams[0].trackMap[0].audioIndex: -2 is not an integer of at least -1',
    ],
    [
      channel({ playlists: [{ ...PLAYLIST, renditions: [{ video: 'bypass_video' }] }] }),
      'playlists[0].renditions[0].video: "bypass_video" is no newTrackName of the channel',
    ],
    [
      channel({ playlists: [{ ...PLAYLIST, renditions: [{ name: 'empty' }] }] }),
      'playlists[0].renditions[0]: names neither video nor audio',
    ],
    [channel({ playlists: [{ ...PLAYLIST, renditions: [] }] }), 'playlists[0].renditions: is missing'],
    [channel({ playlists: [PLAYLIST, PLAYLIST] }), 'playlists[1].fileName: "abr" is given twice'],
    [
      channel({ playlists: [{ ...PLAYLIST, rendition_templates: [{ name: 'all' }] }] }),
      'playlists[0].rendition_templates: is not possible in a multiplex channel',
    ],
  ];
  for (const [json, wanted] of cases) {
    const checked = checkMultiplex(json);
    t.deepEqual(checked.ok ? [] : checked.problems.map(problemText), [wanted]);
  }
});
