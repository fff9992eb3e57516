import test, { type ExecutionContext } from 'ava';
import { definitionKey } from '../../src/tasks/definition.ts';
import { createVhost, openApi, sampleRegistry } from '../support/api/api.ts';

const APP = '/v1/vhosts/files/apps/app';
const STREAM = { name: 'live' };

async function open(t: ExecutionContext) {
  const registry = sampleRegistry();
  createVhost(registry, {
    name: 'files',
    host: { names: ['*'] },
    applications: [{ name: 'app', type: 'live', publishers: { file: {} } }],
  });
  const { call, options } = await openApi(t, {}, registry);
  const act = (action: string, body?: unknown, app = APP) =>
    call('POST', `${app}:${action}`, {}, body === undefined ? undefined : JSON.stringify(body));
  return { call, act, options };
}

const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });

test('a recording is reserved before its stream exists, listed, and stopped', async (t) => {
  const { act, call } = await open(t);
  t.deepEqual((await act('records', {})).body, { statusCode: 200, message: 'OK', response: [] });
  const asked = {
    id: 'r1',
    stream: { name: 'live', variantNames: ['v', 'a:1'], tracks: [3] },
    interval: 60_000,
    segmentationRule: 'Continuity',
    filePath: '${Stream}_${Sequence}.mp4',
    infoPath: 'info.xml',
    metadata: 'mine',
  };
  const started = await act('startRecord', asked);
  t.is(started.status, 200);
  const task = started.body?.response as Record<string, unknown>;
  t.regex(String(task.createdTime), /^\d{4}-\d\d-\d\dT.*[+-]\d\d:\d\d$/);
  const { createdTime: _, ...rest } = task;
  t.deepEqual(rest, {
    id: 'r1',
    vhost: 'files',
    app: 'app',
    state: 'ready',
    isConfig: false,
    stream: { name: 'live', trackIds: [3], variantNames: ['v', 'a:1'] },
    interval: 60_000,
    segmentationRule: 'continuity',
    filePath: '${Stream}_${Sequence}.mp4',
    infoPath: 'info.xml',
    metadata: 'mine',
  });
  await act('startRecord', { id: 'r0', stream: STREAM, schedule: '0 */30 *' });
  const ids = async (body?: unknown) =>
    ((await act('records', body)).body?.response as { id: string }[]).map(({ id }) => id);
  t.deepEqual(await ids(), ['r0', 'r1']);
  t.deepEqual(await ids({}), ['r0', 'r1']);
  t.deepEqual(await ids({ id: 'r1' }), ['r1']);
  t.deepEqual(await ids({ id: 'none' }), []);
  t.is(((await call('GET', `${APP}:records`)).body?.response as unknown[]).length, 2);
  const stopped = await act('stopRecord', { id: 'r1' });
  t.is(stopped.status, 200);
  t.like(stopped.body?.response, { id: 'r1', state: 'stopping' });
  t.deepEqual(await ids(), ['r0']);
  t.deepEqual(
    (await act('stopRecord', { id: 'r1' })).body,
    error(404, 'There is no record information related to the ID [r1]'),
  );
});

test('a recording that a file asks for is listed as such, and can be stopped', async (t) => {
  const { act, options } = await open(t);
  const origin = { entry: 'e', node: options.cluster.self.incarnation, output: 'live', number: 1 };
  const stream = { ...STREAM, trackIds: [], variantNames: [] };
  const spec = { stream, segmentationRule: 'continuity', createdTime: 0 };
  const key = definitionKey({ kind: 'record', vhost: 'files', app: 'app', id: 'Ab3' });
  await options.cluster.config.write([
    { key, value: { spec, persistent: false, stored: false, uid: 'u', origin }, seen: 0 },
  ]);
  const listed = async () => (await act('records')).body?.response as object[];
  t.like((await listed())[0], { id: 'Ab3', isConfig: true, state: 'ready' });
  t.like((await act('stopRecord', { id: 'Ab3' })).body?.response, { id: 'Ab3', isConfig: true, state: 'stopping' });
  t.deepEqual(await listed(), []);
});

test('of concurrent creations under one id one succeeds', async (t) => {
  const { act } = await open(t);
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => act('startRecord', { id: 'same', stream: STREAM })),
  );
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409]);
  const refused = answers.find(({ status }) => status === 409);
  t.deepEqual(refused?.body, error(409, 'Duplicate ID already exists'));
});

const CASES: readonly (readonly [what: string, body: unknown, text: string])[] = [
  ['no object', [], 'Request body must be an object'],
  ['nothing', {}, 'There is no required parameter [ id stream.name]'],
  ['no stream', { id: 'r' }, 'There is no required parameter [ stream.name]'],
  ['no id', { stream: STREAM }, 'There is no required parameter [ id]'],
  [
    'interval and schedule',
    { id: 'r', stream: STREAM, interval: 1000, schedule: '* * *' },
    '[Interval] and [Schedule] cannot be used at the same time',
  ],
  ['a schedule of two fields', { id: 'r', stream: STREAM, schedule: '* *' }, 'Invalid [schedule] parameter'],
  ['a schedule of the 60th second', { id: 'r', stream: STREAM, schedule: '60 * *' }, 'Invalid [schedule] parameter'],
  ['a step of nothing', { id: 'r', stream: STREAM, schedule: '*/0 * *' }, 'Invalid [schedule] parameter'],
  [
    'a negative interval',
    { id: 'r', stream: STREAM, interval: -1 },
    '[interval] must be a whole number of milliseconds, above 0',
  ],
  [
    'a rule that is none',
    { id: 'r', stream: STREAM, segmentationRule: 'x' },
    '[segmentationRule] must be one of discontinuity, continuity',
  ],
  ['an id that is a number', { id: 5, stream: STREAM }, '[id] must be a string'],
  [
    'an id with a NUL',
    { id: 'a\0', stream: STREAM },
    '[id] must have at most 255 characters, and no control characters',
  ],
  [
    'tracks that are names',
    { id: 'r', stream: { name: 'live', trackIds: ['v'] } },
    '[stream.trackIds] must be an array of integers',
  ],
  [
    'a variant that is a number',
    { id: 'r', stream: { name: 'live', variantNames: [1] } },
    '[stream.variantNames] must be an array of strings',
  ],
  [
    'a path out of the root',
    { id: 'r', stream: STREAM, filePath: '../x.ts' },
    'the path leads out of the root: ../x.ts',
  ],
  [
    'an id that is a step up',
    { id: '..', stream: STREAM, filePath: '${Id}/x.ts' },
    'the path leads out of the root: ../x.ts',
  ],
  ['a path that is a number', { id: 'r', stream: STREAM, filePath: 5 }, '[filePath] must be a string'],
];

test('a recording that is asked for wrongly is answered 400', async (t) => {
  const { act } = await open(t);
  for (const [what, body, text] of CASES) t.deepEqual((await act('startRecord', body)).body, error(400, text), what);
  t.deepEqual((await act('records', {})).body?.response, []);
});

test('a missing recording or stream is answered 404 by each action', async (t) => {
  const { act } = await open(t);
  for (const [action, body] of [
    ['startRecord', { id: 'r', stream: STREAM }],
    ['stopRecord', { id: 'r' }],
    ['records', {}],
  ] as const) {
    t.deepEqual(
      (await act(action, body, '/v1/vhosts/none/apps/app')).body,
      error(404, 'Could not find the virtual host: [none]'),
    );
    t.deepEqual(
      (await act(action, body, '/v1/vhosts/files/apps/none')).body,
      error(404, 'Could not find the application: [files/none]'),
    );
    t.deepEqual(
      (await act(action, body, '/v1/vhosts/default/apps/app')).body,
      error(404, 'Could not find publisher: [default/app]'),
    );
  }
});

test('stopping a recording needs an id', async (t) => {
  const { act } = await open(t);
  t.deepEqual((await act('stopRecord', {})).body, error(400, 'There is no required parameter [ id]'));
});

test('a recording shows how long its files stay', async (t) => {
  const registry = sampleRegistry();
  const file = { deleteAfter: 600, maxTotalSize: '5G' };
  createVhost(registry, {
    name: 'files',
    host: { names: ['*'] },
    applications: [{ name: 'app', type: 'live', publishers: { file } }],
  });
  const { call } = await openApi(t, {}, registry);
  const post = (action: string, body: object) => call('POST', `${APP}:${action}`, {}, JSON.stringify(body));
  t.like((await post('startRecord', { id: 'r', stream: STREAM })).body?.response, file);
  t.like(((await call('GET', `${APP}:records`)).body?.response as object[])[0], file);
  t.like(((await post('records', { id: 'r' })).body?.response as object[])[0], file);
  t.like((await post('stopRecord', { id: 'r' })).body?.response, file);
});
