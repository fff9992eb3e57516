import test, { type ExecutionContext } from 'ava';
import { readCue } from '../../src/core/subtitle-cue.ts';
import { Registry } from '../../src/core/registry.ts';
import { openApi } from '../support/api/api.ts';
import { RTMP, Sink, VIDEO, vhostConfig, video } from '../unit/core/support.ts';

const OK = { message: 'OK', statusCode: 200 };
const rendition = [{ label: 'Korean', language: 'ko' }, { label: 'English' }];

/** The API beside a live stream with subtitles, and what they show. */
async function open(t: ExecutionContext, begun = true) {
  const registry = new Registry();
  const said = { name: 'said', type: 'live', subtitles: { enable: true, rendition } };
  const config = vhostConfig({ name: 'default', host: { names: ['*'] }, applications: [said] });
  registry.createVhost(config, true);
  const { call } = await openApi(t, {}, registry);
  const application = registry.vhost('default').application('said');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  if (begun) input.write(video(7, true));
  const sink = new Sink();
  input.read(sink);
  const send = (body?: unknown, path = 'said/streams/live') =>
    call(
      'POST',
      `/v1/vhosts/default/apps/${path}:sendSubtitles`,
      {},
      body === undefined ? undefined : JSON.stringify(body),
    );
  const shown = () =>
    sink.packets.flatMap(({ track, pts, duration, data }) =>
      track.type === 'subtitle' ? [[track.publicName, pts, duration, readCue(data)]] : [],
    );
  return { input, send, shown };
}

const webvtt = (...subtitles: unknown[]) => ({ format: 'webvtt', data: [{ label: 'Korean', subtitles }] });

test('subtitles of several labels are shown, those of a label one after another', async (t) => {
  const { send, shown, input } = await open(t);
  const { status, body } = await send({
    format: 'WebVTT',
    data: [
      {
        label: 'Korean',
        subtitles: [
          { startOffset: 0, durationMs: 3000, settings: ' line:80%  align:start ', text: '안녕' },
          { startOffset: 500, text: 'one\r\ntwo' },
        ],
      },
      { label: 'English', subtitles: [{ text: '<i>Hello</i>' }] },
    ],
  });
  t.deepEqual([status, body], [200, OK]);
  input.write(video(12, true));
  t.deepEqual(shown(), [
    ['Korean', 7000, 3000, { settings: 'line:80% align:start', text: '안녕' }],
    ['English', 7000, 1000, { settings: '', text: '<i>Hello</i>' }],
    ['Korean', 10_500, 1000, { settings: '', text: 'one\ntwo' }],
  ]);
});

const INVALID: readonly (readonly [title: string, body: unknown, message: string])[] = [
  ['no format', { data: [] }, 'format(string) and data(array) are required'],
  ['no data', { format: 'webvtt' }, 'format(string) and data(array) are required'],
  ['another format', { format: 'srt', data: [] }, 'format is not supported: [srt]'],
  ['no cue', { format: 'webvtt', data: [] }, 'one to 100 subtitles are possible'],
  ['no label', { format: 'webvtt', data: [{ subtitles: [] }] }, 'label(string) and subtitles(array) are required'],
  ['no object', { format: 'webvtt', data: [null] }, 'label(string) and subtitles(array) are required'],
  [
    'an unknown label',
    { format: 'webvtt', data: [{ label: 'German', subtitles: [] }] },
    'label is not found: [German]',
  ],
  ['no text', webvtt({}), 'text(string) is required in subtitles'],
  ['a number as text', webvtt({ text: 1 }), 'text(string) is required in subtitles'],
  ['a blank line', webvtt({ text: 'a\n\nb' }), 'text has a blank line, or -->'],
  ['an empty text', webvtt({ text: '' }), 'text has a blank line, or -->'],
  ['an arrow', webvtt({ text: 'a --> b' }), 'text has a blank line, or -->'],
  ['a negative offset', webvtt({ text: 'a', startOffset: -1 }), 'startOffset must be an integer from 0 to 86400000'],
  ['half a millisecond', webvtt({ text: 'a', durationMs: 1.5 }), 'durationMs must be an integer from 1 to 86400000'],
  ['no duration', webvtt({ text: 'a', durationMs: 0 }), 'durationMs must be an integer from 1 to 86400000'],
  ['more than a day', webvtt({ text: 'a', durationMs: 86_400_000, startOffset: 1 }), 'subtitles end within a day'],
  ['an unknown setting', webvtt({ text: 'a', settings: 'colour:red' }), 'settings are not supported: [colour:red]'],
  ['a setting twice', webvtt({ text: 'a', settings: 'line:1 line:2' }), 'settings are not supported: [line:2]'],
  ['a line feed in settings', webvtt({ text: 'a', settings: 'line:1\nx' }), 'settings are not supported: [line:1\nx]'],
  ['settings that are no text', webvtt({ text: 'a', settings: 1 }), 'settings must be string'],
  ['a name of every object', webvtt({ text: 'a', settings: 'toString:1' }), 'settings are not supported: [toString:1]'],
  ['101 cues', webvtt(...Array.from({ length: 101 }, () => ({ text: 'a' }))), 'one to 100 subtitles are possible'],
  ['64 KiB and a byte', webvtt({ text: 'a'.repeat(65_537) }), 'text is longer than 65536 bytes'],
];

for (const [title, body, message] of INVALID)
  test(`subtitles with ${title} are refused, and none is shown`, async (t) => {
    const { send, shown, input } = await open(t);
    const answer = await send(body);
    t.is(answer.status, 400);
    t.is((answer.body as { message: string }).message, `[HTTP] ${message} (400)`);
    input.write(video(20, true));
    t.deepEqual(shown(), []);
  });

test('a body that is no object is refused', async (t) => {
  const { send } = await open(t);
  for (const body of [[], 'webvtt', 7]) t.is((await send(body)).status, 400);
  t.is((await send()).status, 400);
});

test('a stream or an application that does not exist is not found', async (t) => {
  const { send } = await open(t);
  t.is((await send(webvtt({ text: 'a' }), 'said/streams/other')).status, 404);
  t.is((await send(webvtt({ text: 'a' }), 'other/streams/live')).status, 404);
});

test('a stream without media shows no subtitles yet', async (t) => {
  const { send } = await open(t, false);
  t.is((await send(webvtt({ text: 'a' }))).status, 503);
});
