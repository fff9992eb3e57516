import test from 'ava';
import { openChannelApi } from '../support/channels/channels.ts';
import { until } from '../support/time/until.ts';

const LIST = 'app/multiplexChannels';
const ONE = `${LIST}/mux`;
const CREATED = { message: 'Created', statusCode: 201 };
const OK = { message: 'OK', statusCode: 200 };
const MISSING = { message: 'Could not find the application or stream (404)', statusCode: 404 };
const error = (statusCode: number, text: string) => ({ message: `[HTTP] ${text} (${statusCode})`, statusCode });

const CHANNEL = {
  outputStream: { name: 'mux' },
  sourceStreams: [
    {
      name: 'tv1',
      url: 'stream://default/app/tv1',
      trackMap: [
        { sourceTrackName: 'bypass_video', newTrackName: 'tv1_video', bitrateConf: 5_000_000, framerateConf: 30 },
        { sourceTrackName: 'bypass_audio', newTrackName: 'tv1_audio', bitrateConf: 128_000 },
      ],
    },
    {
      name: 'tv2',
      url: 'stream://default/app/tv2',
      trackMap: [{ sourceTrackName: 'a', newTrackName: 'tv2_audio', bitrateConf: 0, audioIndex: 1, language: 'en' }],
    },
  ],
  playlists: [
    {
      name: 'LLHLS ABR',
      fileName: 'abr',
      options: { webrtcAutoAbr: true, hlsChunklistPathDepth: 0 },
      renditions: [
        { name: 'tv1', video: 'tv1_video', audio: 'tv1_audio' },
        { name: 'tv2', audio: 'tv2_audio', audioIndexHint: 2 },
      ],
    },
    { name: 'plain', fileName: 'plain', renditions: [{ name: 'tv1', video: 'tv1_video' }] },
  ],
};

const DETAIL = {
  ...CHANNEL,
  outputStream: { name: 'mux', bypassTranscoder: true },
  playlists: [
    CHANNEL.playlists[0],
    { ...CHANNEL.playlists[1], options: { webrtcAutoAbr: false, hlsChunklistPathDepth: -1 } },
  ],
};

test('a channel is created, listed, shown and deleted', async (t) => {
  const { call, multiplex } = await openChannelApi(t);
  t.deepEqual((await call('GET', LIST)).body, { ...OK, response: [] });
  t.like(await call('POST', LIST, CHANNEL), { status: 201, body: CREATED });
  t.deepEqual((await call('GET', LIST)).body, { ...OK, response: ['mux'] });
  t.deepEqual((await call('GET', ONE)).body, { ...OK, response: { ...DETAIL, state: 'None' } });
  await until('it runs', () => multiplex.running.has('mux'));
  t.deepEqual((await call('DELETE', ONE)).body, OK);
  t.is(multiplex.running.size, 0);
  t.deepEqual((await call('GET', ONE)).body, MISSING);
  t.deepEqual((await call('DELETE', ONE)).body, MISSING);
});

test('the state of a multiplex channel is the one that its node reports', async (t) => {
  const { call, multiplex } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  await until('it runs', () => multiplex.running.has('mux'));
  const pullingMessage = 'Multiplex Channel : #default#app/mux: Wait for stream tv1';
  multiplex.report = { state: 'Pulling', pullingMessage };
  t.deepEqual((await call('GET', ONE)).body?.response, { ...DETAIL, state: 'Pulling', pullingMessage });
  multiplex.report = { state: 'Playing', pullingMessage };
  t.deepEqual((await call('GET', ONE)).body?.response, { ...DETAIL, state: 'Playing' });
});

test('a channel cannot be patched', async (t) => {
  const { call } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  t.deepEqual((await call('PATCH', ONE, { playlists: [] })).body, error(404, 'Controller not found'));
});

test('the answer that describes a multiplex channel creates one like it', async (t) => {
  const { call } = await openChannelApi(t);
  await call('POST', LIST, CHANNEL);
  const { response } = (await call('GET', ONE)).body as { response: typeof DETAIL };
  const outputStream = { ...response.outputStream, name: 'again' };
  t.is((await call('POST', LIST, { ...response, outputStream })).status, 201);
  t.deepEqual((await call('GET', `${LIST}/again`)).body?.response, { ...DETAIL, outputStream, state: 'None' });
});

const [first, second] = CHANNEL.sourceStreams;
const sources = (...sourceStreams: unknown[]) => ({ ...CHANNEL, sourceStreams });
const tracks = (...trackMap: unknown[]) => sources({ ...first, trackMap }, second);
const playlists = (...given: unknown[]) => ({ ...CHANNEL, playlists: given });
const track = first?.trackMap[0];
const playlist = { name: 'p', fileName: 'p' };
const REFUSED: readonly (readonly [what: string, body: unknown, text: RegExp])[] = [
  ['that is a list', [], /^Request body must be an object$/],
  ['without an output stream', sources(), /^outputStream: is missing$|^sourceStreams: is missing$/],
  ['without a name', { ...CHANNEL, outputStream: {} }, /^outputStream\.name: is missing$/],
  ['with an odd name', { ...CHANNEL, outputStream: { name: 'a?b' } }, /^outputStream\.name: "a\?b" is not a name/],
  ['without sources', sources(), /^sourceStreams: is missing$/],
  ['with a source of a file', sources({ ...first, url: 'file://a.mp4' }), /^sourceStreams\[0\]\.url: /],
  ['with a source twice', sources(first, first), /^sourceStreams\[1\]\.name: "tv1" is given twice$/],
  ['without tracks', tracks(), /^sourceStreams\[0\]\.trackMap: is missing$/],
  [
    'with a track without a source',
    tracks({ newTrackName: 'a' }),
    /^sourceStreams\[0\]\.trackMap\[0\]\.sourceTrackName: is missing$/,
  ],
  [
    'with a track without a name',
    tracks({ sourceTrackName: 'a' }),
    /^sourceStreams\[0\]\.trackMap\[0\]\.newTrackName: is missing$/,
  ],
  [
    'with a track twice',
    tracks(...(first?.trackMap ?? []), track),
    /^sourceStreams\[0\]\.trackMap\[2\]\.newTrackName: "tv1_video" is given twice$/,
  ],
  [
    'with an odd bitrate',
    tracks({ ...track, bitrateConf: 'fast' }),
    /^sourceStreams\[0\]\.trackMap\[0\]\.bitrateConf: /,
  ],
  [
    'with a playlist of nothing',
    playlists({ ...playlist, renditions: [] }),
    /^playlists\[0\]\.renditions: is missing$/,
  ],
  [
    'with a rendition of nothing',
    playlists({ ...playlist, renditions: [{}] }),
    /^playlists\[0\]\.renditions\[0\]: names neither/,
  ],
  [
    'with a track that there is not',
    playlists({ ...playlist, renditions: [{ video: 'none' }] }),
    /^playlists\[0\]\.renditions\[0\]\.video: "none" is no newTrackName/,
  ],
  [
    'with a playlist twice',
    playlists(CHANNEL.playlists[1], CHANNEL.playlists[1]),
    /^playlists\[1\]\.fileName: "plain" is given twice$/,
  ],
  ['with too many sources', sources(...Array.from({ length: 5000 }, () => ({}))), /^sourceStreams: has 5000 items/],
];

test('a wrong definition of a multiplex channel is refused with the element that is', async (t) => {
  const { call } = await openChannelApi(t);
  for (const [what, body, text] of REFUSED) {
    const { status, body: answer } = await call('POST', LIST, body);
    t.is(status, 400, what);
    t.regex(/^\[HTTP\] (.*) \(400\)$/s.exec(answer?.message ?? '')?.[1] ?? '', text, what);
  }
  t.deepEqual((await call('GET', LIST)).body?.response, []);
});

test('names and loops are looked for in both kinds of channels', async (t) => {
  const { call } = await openChannelApi(t);
  const items = [{ url: 'stream://default/app/mux' }];
  const schedule = {
    stream: { name: 'tv1' },
    programs: [{ scheduled: '2099-01-01T00:00:00Z', items }],
  };
  t.is((await call('POST', 'app/scheduledChannels', schedule)).status, 201);
  const named = { ...CHANNEL, outputStream: { name: 'tv1' } };
  t.deepEqual((await call('POST', LIST, named)).body, error(409, "Stream 'tv1' already exists"));
  const chain = 'default/app/mux -> default/app/tv1 -> default/app/mux';
  const text = `sourceStreams[0].url makes the channel play itself: ${chain}`;
  t.deepEqual((await call('POST', LIST, CHANNEL)).body, error(400, text));
  const own = sources({ ...first, url: 'stream://default/app/mux' }, second);
  t.is((await call('POST', LIST, own)).status, 400);
  const copy = sources({ ...first, url: 'stream://default/app/mux_copy' }, second);
  t.is((await call('POST', LIST, copy)).status, 201, 'a profile that it passes by');
});
