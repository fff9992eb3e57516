import test, { type ExecutionContext } from 'ava';
import { definitionKey } from '../../src/tasks/definition.ts';
import { createVhost, openApi, sampleRegistry } from '../support/api/api.ts';

const APP = '/v1/vhosts/other/apps/pushing';
const PUSH = {
  id: 'one',
  stream: { name: 'live', variantNames: ['high'] },
  protocol: 'RTMP',
  url: 'rtmp://example.com/app',
  streamKey: 'secret',
};

async function open(t: ExecutionContext) {
  const registry = sampleRegistry();
  createVhost(registry, {
    name: 'other',
    host: { names: ['other'] },
    applications: [{ name: 'pushing', type: 'live', publishers: { push: {} } }],
  });
  const { call, options } = await openApi(t, {}, registry);
  const act = async (action: string, body?: unknown, app = APP) => {
    const answer = await call('POST', `${app}:${action}`, {}, body === undefined ? undefined : JSON.stringify(body));
    return { ...answer, response: answer.body?.response as never };
  };
  return { call, act, options };
}

const ids = (pushes: readonly { readonly id: string }[]) => pushes.map(({ id }) => id);

test('a push is created before its stream exists, listed, and stopped', async (t) => {
  const { act, call } = await open(t);
  const created = await act('startPush', PUSH);
  t.is(created.status, 200);
  const { createdTime, startTime, finishTime, ...others } = created.response as Record<string, string>;
  t.deepEqual(others as unknown, {
    id: 'one',
    state: 'ready',
    isConfig: false,
    vhost: 'other',
    app: 'pushing',
    stream: { name: 'live', trackIds: [], variantNames: ['high'] },
    protocol: 'rtmp',
    url: 'rtmp://example.com/app',
    streamKey: 'secret',
    sentBytes: 0,
    sentTime: 0,
    sequence: 0,
    totalsentBytes: 0,
    totalsentTime: 0,
  });
  t.true(Date.parse(createdTime as string) > Date.now() - 60_000);
  t.deepEqual(
    [startTime, finishTime].map((time) => Date.parse(time as string)),
    [0, 0],
  );

  await act('startPush', { ...PUSH, id: 'a', stream: { name: 'live', tracks: [1] } });
  const { response } = await act('pushes');
  t.deepEqual(ids(response), ['a', 'one']);
  t.deepEqual((response as readonly unknown[])[1], created.response);
  t.deepEqual(ids((await act('pushes', { id: 'one' })).response), ['one']);
  t.deepEqual((await act('pushes', { id: 'none' })).response, []);
  const got = await call('GET', `${APP}:pushes`);
  t.deepEqual(ids(got.body?.response as never), ['a', 'one']);

  const stopped = await act('stopPush', { id: 'one' });
  t.is(stopped.status, 200);
  t.like(stopped.response, { id: 'one', state: 'stopping' });
  t.deepEqual(ids((await act('pushes')).response), ['a']);
  t.is((await act('startPush', PUSH)).status, 200);
});

test('of concurrent creations of a push with one id, one succeeds', async (t) => {
  const { act } = await open(t);
  const answers = await Promise.all(Array.from({ length: 5 }, () => act('startPush', PUSH)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409, 409]);
  t.is(answers.find(({ status }) => status === 409)?.body?.message, '[HTTP] Duplicate ID (409)');
});

test('an application without the Push publisher lists no pushes, and takes none', async (t) => {
  const { act } = await open(t);
  const app = '/v1/vhosts/default/apps/app';
  t.deepEqual((await act('pushes', {}, app)).response, []);
  for (const action of ['startPush', 'stopPush']) {
    const { status, body } = await act(action, PUSH, app);
    t.is(status, 404);
    t.is(body?.message, '[HTTP] Could not find the application: [default/app] (404)');
  }
  t.is((await act('pushes', {}, '/v1/vhosts/other/apps/none')).status, 404);
  t.is((await act('startPush', PUSH, '/v1/vhosts/none/apps/app')).status, 404);
});

const { id: _id, ...NAMELESS } = PUSH;
const { streamKey: _key, ...KEYLESS } = PUSH;
const WRONG: readonly (readonly [what: string, body: unknown, message: string])[] = [
  ['nothing', {}, 'There is no required parameter [ id stream.name url protocol]'],
  ['no id', NAMELESS, 'There is no required parameter [ id]'],
  ['no stream name', { ...PUSH, stream: {} }, 'There is no required parameter [ stream.name]'],
  ['no key', KEYLESS, 'There is no required parameter [ streamKey]'],
  ['a list', [], 'Request body must be an object'],
  ['a number as id', { ...PUSH, id: 1 }, '[id] must be a string'],
  ['a number as key', { ...PUSH, streamKey: 1 }, '[streamKey] must be a string'],
  [
    'an odd variant',
    { ...PUSH, stream: { name: 's', variantNames: [1] } },
    '[stream.variantNames] must be an array of strings',
  ],
  ['an unknown protocol', { ...PUSH, protocol: 'ftp' }, "Could not find protocol 'ftp': [other/pushing]"],
  ['a broken url', { ...PUSH, url: 'nowhere' }, 'Could not parse url'],
  ['a url of another protocol', { ...PUSH, url: 'http://example.com/app' }, 'Unsupported protocol'],
];

for (const [what, body, message] of WRONG)
  test(`a push with ${what} is refused`, async (t) => {
    const { act } = await open(t);
    const answer = await act('startPush', body);
    t.is(answer.status, 400);
    t.is(answer.body?.message, `[HTTP] ${message} (400)`);
    t.deepEqual((await act('pushes')).response, []);
  });

test('a push that a file asks for is listed as such, and can be stopped', async (t) => {
  const { act, options } = await open(t);
  const { id: _, ...spec } = { ...PUSH, stream: { name: 'live', trackIds: [], variantNames: [] }, createdTime: 0 };
  const origin = { entry: 'e', node: options.cluster.self.incarnation, output: 'live', number: 1 };
  const key = definitionKey({ kind: 'push', vhost: 'other', app: 'pushing', id: 'Ab3' });
  await options.cluster.config.write([
    { key, value: { spec, persistent: false, stored: false, uid: 'u', origin }, seen: 0 },
  ]);
  t.like((await act('pushes')).response[0], { id: 'Ab3', isConfig: true, state: 'ready' });
  t.like((await act('stopPush', { id: 'Ab3' })).response, { id: 'Ab3', isConfig: true, state: 'stopping' });
  t.deepEqual((await act('pushes')).response, [] as never);
});

test('a push that cannot be stopped is reported with the reason', async (t) => {
  const { act } = await open(t);
  const unknown = await act('stopPush', { id: 'x' });
  t.is(unknown.status, 404);
  t.is(unknown.body?.message, "[HTTP] Could not find id 'x': [other/pushing] (404)");
  const nameless = await act('stopPush', {});
  t.is(nameless.status, 400);
  t.is(nameless.body?.message, '[HTTP] There is no required parameter [ id] (400)');
});
