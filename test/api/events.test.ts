import test, { type ExecutionContext } from 'ava';
import { id3Tag } from '../../src/containers/id3.ts';
import { spliceInsert } from '../../src/containers/mpegts/splice.ts';
import { openApi } from '../support/api/api.ts';
import { RTMP, Sink, VIDEO, video } from '../unit/core/support.ts';

const PATH = '/v1/vhosts/default/apps/app/streams';
const TITLE = { frameType: 'TIT2', data: 'On air' };
const OK = { message: 'OK', statusCode: 200 };

/** The API beside a live stream, and what is injected into that. @param begun it has brought media */
async function open(t: ExecutionContext, begun = true) {
  const { call, registry } = await openApi(t);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  if (begun) input.write(video(7, true));
  const sink = new Sink();
  input.read(sink);
  const send = (body?: unknown, action = 'sendEvent', stream = 'live') =>
    call('POST', `${PATH}/${stream}:${action}`, {}, body === undefined ? undefined : JSON.stringify(body));
  const events = () =>
    sink.packets.flatMap(({ track, data, pts }) =>
      track.type === 'data' ? [{ codec: track.codec, target: track.target, data, pts }] : [],
    );
  return { input, call, send, events };
}

test('an ID3 tag of several frames is injected at the time of the newest media', async (t) => {
  const { send, events, input } = await open(t);
  const { status, body } = await send({
    eventFormat: 'ID3v2',
    urgent: true,
    events: [
      { frameType: 'txxx', info: 'AirenSoft', data: 'é' },
      TITLE,
      { frameType: 'PRIV', info: 'com.example', data: 'x\0y' },
    ],
  });
  t.deepEqual([status, body], [200, OK]);
  const tag = id3Tag([
    { id: 'TXXX', description: 'AirenSoft', value: 'é' },
    { id: 'TIT2', text: 'On air' },
    { id: 'PRIV', owner: 'com.example', data: Buffer.from('x\0y') },
  ]);
  t.deepEqual(events(), [{ codec: 'ID3v2', target: undefined, data: tag, pts: 7 * 90_000 }]);
  t.is(input.tracks.length, 2);
});

test('the target is chosen by eventType or eventTarget, in any case', async (t) => {
  const { send, events } = await open(t);
  for (const choice of [{ eventType: 'Video' }, { eventTarget: 'AUDIO' }, { eventType: 'event', eventTarget: 'video' }])
    t.is((await send({ eventFormat: 'id3v2', events: [TITLE], ...choice })).status, 200);
  t.deepEqual(
    events().map(({ target }) => target),
    ['video', 'audio', undefined],
  );
});

test('cues and splices are events of their own', async (t) => {
  const { send, events } = await open(t);
  const cues = [{ cueType: 'OUT', duration: 60_500 }, { cueType: 'in' }];
  t.is((await send({ eventFormat: 'cue', events: cues })).status, 200);
  const splices = [
    { spliceCommand: 'spliceInsert', id: 7, type: 'out', duration: 30_000, autoReturn: true },
    { id: 7, type: 'In' },
  ];
  t.is((await send({ eventFormat: 'SCTE35', events: splices })).status, 200);
  t.deepEqual(
    events().map(({ codec, data }) => [codec, codec === 'CUE' ? JSON.parse(data.toString()) : data]),
    [
      ['CUE', { cueType: 'out', duration: 60_500 }],
      ['CUE', { cueType: 'in' }],
      ['SCTE35', spliceInsert({ id: 7, out: true, duration: 2_700_000, autoReturn: true })],
      ['SCTE35', spliceInsert({ id: 7, out: false, autoReturn: false })],
    ],
  );
});

const id3 = (...events: unknown[]) => ({ eventFormat: 'id3v2', events });
const cue = (event: object) => ({ eventFormat: 'cue', events: [event] });
const splice = (event: object) => ({ eventFormat: 'scte35', events: [{ id: 1, type: 'out', ...event }] });
const ad = (event: object) => ({ eventFormat: 'interstitial', events: [{ assetUri: 'https://a/b', ...event }] });
const AD_URL = 'assetUri must be an http or https URL of at most 2000 characters';
const UNUSABLE = 'Could not make events data';
const REQUIRED = 'eventFormat(string) and events(array) are required';

const REFUSED: readonly (readonly [what: string, body: unknown, text: string])[] = [
  ['nothing', undefined, 'Request body must be an object'],
  ['no object', [], 'Request body must be an object'],
  ['an empty body', {}, REQUIRED],
  ['a format that is no text', { eventFormat: 1, events: [] }, REQUIRED],
  ['events that are no list', { eventFormat: 'id3v2', events: {} }, REQUIRED],
  ['another format', { eventFormat: 'toString', events: [] }, 'eventFormat is not supported: [toString]'],
  ['no events', id3(), UNUSABLE],
  ['too many', id3(...Array.from({ length: 101 }, () => TITLE)), UNUSABLE],
  ['too much', id3({ frameType: 'TXXX', data: 'x'.repeat(64_000) }), UNUSABLE],
  ['an event that is no object', id3('TIT2'), UNUSABLE],
  ['a frame without a type', id3({ data: 'x' }), 'frameType is required in events'],
  ['a frame of another type', id3({ frameType: 'WXXX' }), 'frameType is not supported: [WXXX]'],
  ['a text frame with a strange name', id3({ frameType: 'T\u00dfXX' }), 'frameType is not supported: [T\u00dfXX]'],
  ['data that is no text', id3({ ...TITLE, data: 5 }), UNUSABLE],
  ['a description with a NUL', id3({ frameType: 'TXXX', info: 'a\0b', data: 'c' }), UNUSABLE],
  ['an owner that is not Latin-1', id3({ frameType: 'PRIV', info: 'ключ', data: 'c' }), UNUSABLE],
  ['a target that is no text', { ...id3(TITLE), eventType: 5 }, 'eventType must be string'],
  ['another target', { ...id3(TITLE), eventTarget: 'subtitle' }, 'eventType is not supported: [subtitle]'],
  ['a cue that is neither', cue({ cueType: 'on', duration: 1 }), UNUSABLE],
  ['a cue out without a duration', cue({ cueType: 'out' }), UNUSABLE],
  ['a cue out of no length', cue({ cueType: 'out', duration: 0 }), UNUSABLE],
  ['a cue out of more than a day', cue({ cueType: 'out', duration: 86_400_001 }), UNUSABLE],
  ['another command', splice({ spliceCommand: 'timeSignal' }), UNUSABLE],
  ['a splice without an id', splice({ id: undefined }), UNUSABLE],
  ['an id of more than 32 bits', splice({ id: 2 ** 32 }), UNUSABLE],
  ['a negative break', splice({ duration: -1 }), UNUSABLE],
  ['an interstitial without an asset', ad({ assetUri: undefined }), 'assetUri or assetList is required, and not both'],
  ['one with two', ad({ assetList: 'https://b' }), 'assetUri or assetList is required, and not both'],
  ['a relative URL', ad({ assetUri: '/ad.m3u8' }), AD_URL],
  ['another scheme', ad({ assetUri: 'data:text/plain,a' }), AD_URL],
  ['a URL that is too long', ad({ assetUri: `https://a/${'b'.repeat(2000)}` }), AD_URL],
  ['one that is too long once it is encoded', ad({ assetUri: `https://a/${'"'.repeat(1000)}` }), AD_URL],
  ['an id that ends a quoted string', ad({ id: 'a"' }), 'id must be 1 to 100 letters, digits and ._:@/+=-'],
  ['an empty id', ad({ id: '' }), 'id must be 1 to 100 letters, digits and ._:@/+=-'],
  ['half a millisecond', ad({ duration: 0.5 }), 'duration must be a whole number of milliseconds, of at most a day'],
  [
    'a start in the past',
    ad({ startOffset: -1 }),
    'startOffset must be a whole number of milliseconds, of at most a day',
  ],
  ['another snap', ad({ snap: ['both'] }), 'snap must be an array of "OUT" and "IN", each at most once'],
  [
    'a restriction twice',
    ad({ restrict: ['skip', 'skip'] }),
    'restrict must be an array of "SKIP" and "JUMP", each at most once',
  ],
  ['an interstitial that is none', { eventFormat: 'interstitial', events: ['x'] }, 'an interstitial must be an object'],
  ['a return that is no answer', splice({ autoReturn: 'yes' }), UNUSABLE],
];

test('an interstitial is sent as it was checked', async (t) => {
  const { send, events } = await open(t);
  const given = {
    id: 'ad-1',
    assetList: 'https://ads.example.com/list?a="b"',
    duration: 15_000,
    startOffset: 2000,
    resumeOffset: 0,
    snap: ['OUT'],
    restrict: ['SKIP', 'JUMP'],
  };
  const answer = await send({
    eventFormat: 'interstitial',
    events: [{ ...given, snap: ['out'], more: 1 }, { assetUri: 'http://a/b' }],
  });
  t.deepEqual([answer.status, answer.body], [200, OK]);
  const sent = events().map(({ codec, data }) => [codec, JSON.parse(data.toString()) as unknown]);
  t.deepEqual(sent, [
    ['INTERSTITIAL', { ...given, assetList: 'https://ads.example.com/list?a=%22b%22' }],
    ['INTERSTITIAL', { assetUri: 'http://a/b' }],
  ]);
});

test('an event that cannot be sent is rejected with the reason, and no part of it is injected', async (t) => {
  const { send, events } = await open(t);
  for (const [what, body, text] of REFUSED) {
    const answer = await send(body);
    t.deepEqual([answer.status, answer.body], [400, { message: `[HTTP] ${text} (400)`, statusCode: 400 }], what);
  }
  t.deepEqual(events(), []);
});

test('a stream that is not there, or has brought no media yet', async (t) => {
  const { send, call } = await open(t, false);
  const missing = { message: '[HTTP] Could not find stream: [default/app/none] (404)', statusCode: 404 };
  t.deepEqual((await send(id3(TITLE), 'sendEvent', 'none')).body, missing);
  t.deepEqual((await send([id3(TITLE)], 'sendEvents', 'none')).body, missing);
  const { status, body } = await send(id3(TITLE));
  const text = '[HTTP] Internal Server Error - Could not inject event: [default/app/live] (500)';
  t.deepEqual([status, body], [500, { message: text, statusCode: 500 }]);
  t.is((await call('POST', '/v1/vhosts/default/apps/no/streams/live:sendEvent', {}, '{}')).status, 404);
  t.is((await call('GET', `${PATH}/live:sendEvent`)).status, 405);
});

test('several bodies have a result each, under their common status', async (t) => {
  const { send, events } = await open(t);
  const all = await send([id3(TITLE), cue({ cueType: 'in' })], 'sendEvents');
  t.deepEqual([all.status, all.body as unknown], [200, [OK, OK]]);
  t.is(events().length, 2);
  const some = await send([id3(TITLE), {}, 5], 'sendEvents');
  const bad = { message: 'Bad Request', statusCode: 400 };
  t.deepEqual([some.status, some.body as unknown], [207, [OK, bad, bad]]);
  t.is((await send([{}], 'sendEvents')).status, 400);
  t.is(events().length, 3);
  for (const body of [undefined, {}, [], 'x']) {
    const refused = await send(body, 'sendEvents');
    t.deepEqual(refused.body, { message: '[HTTP] events(array) is required (400)', statusCode: 400 });
  }
  const many = await send(
    Array.from({ length: 101 }, () => id3(TITLE)),
    'sendEvents',
  );
  t.is(many.status, 400);
  t.is(events().length, 3);
});
