import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { merged } from '../../src/api/routes/recordings.ts';
import { kilnError } from '../../src/errors.ts';
import type { OtherNodes } from '../../src/peers/other-nodes.ts';
import { createVhost, openApi, sampleRegistry } from '../support/api/api.ts';
import { openFinished, openRecordings } from '../support/recording/finished.ts';

const PATH = '/v1/vhosts/default/apps/app/recordings';
const NOON = Date.UTC(2026, 2, 5, 12);
const MINUTE = 60_000;
const NONE = `20260305T120000000-${'f'.repeat(32)}`;

async function open(t: ExecutionContext, busy: Parameters<typeof openRecordings>[1] = {}) {
  const node = openFinished(t);
  const registry = sampleRegistry();
  createVhost(registry, { name: 'static', host: { names: ['*'] }, applications: [{ name: 'app', type: 'live' }] });
  const { call, app } = await openApi(t, {}, registry, { recordings: openRecordings(node.folder, busy) });
  const names = { vhost: 'default', app: 'app' };
  const list = async (query = '') => {
    const { body } = await call('GET', `${PATH}${query}`);
    return body?.response as { recordings: { id: string }[]; cursor?: string };
  };
  return {
    ...node,
    ...{ call, app, list },
    ids: async (query = '') => (await list(query)).recordings.map(({ id }) => id),
    finish: (time: number, more = {}) => node.finish(time, { ...names, ...more }),
  };
}

const error = (statusCode: number, text: string) => ({ statusCode, message: `[HTTP] ${text} (${statusCode})` });

test('finished files are listed and shown with what is known of them', async (t) => {
  const { call, root, finish } = await open(t);
  t.deepEqual((await call('GET', PATH)).body?.response, { recordings: [] });
  const tracks = [{ type: 'audio', codec: 'AAC', samplerate: 48_000, channels: 2 }];
  const indexed = tracks.map((track) => ({ ...track, format: 'digest' }));
  const subtitles = [{ label: 'English', language: 'en', name: '0.English.en.vtt', inode: 1 }];
  const id = await finish(NOON, { metadata: 'mine', tracks: indexed, recordTime: 1234, subtitles });
  const { body } = await call('GET', PATH);
  const [recording] = (body?.response as { recordings: Record<string, unknown>[] }).recordings;
  t.like(recording, {
    ...{ id, recordId: 'task', vhost: 'default', app: 'app', stream: 's', sequence: 0, metadata: 'mine' },
    ...{ rootPath: root, path: '0.ts', infoPath: 'info.xml', duration: 1.234, size: 5 },
    ...{ container: 'MPEG-TS', tracks, isLocal: true },
    subtitles: [{ label: 'English', language: 'en', path: '0.English.en.vtt' }],
  });
  t.is(Date.parse(String(recording?.startTime)), NOON);
  t.is(typeof recording?.node, 'string');
  t.deepEqual((await call('GET', `${PATH}/${id}`)).body?.response, recording);
});

test('the list is paged, and filtered by stream, recording and time', async (t) => {
  const { list, ids, finish } = await open(t);
  const all: string[] = [];
  for (let at = 0; at < 5; at++) all.push(await finish(NOON + at * MINUTE, { stream: `s${at % 2}`, id: `r${at % 3}` }));
  t.deepEqual(await ids(), all);
  const first = await list('?limit=2');
  t.deepEqual(
    first.recordings.map(({ id }) => id),
    all.slice(0, 2),
  );
  t.is(first.cursor, all[1]);
  t.deepEqual(await ids(`?limit=2&cursor=${all[3]}`), all.slice(4));
  t.is((await list(`?limit=2&cursor=${all[3]}`)).cursor, undefined);
  t.deepEqual(await ids('?stream=s1'), [all[1], all[3]] as string[]);
  t.deepEqual(await ids('?recordId=r2&stream=s0'), [all[2]] as string[]);
  t.deepEqual(await ids('?start=2026-03-05T12:02:00Z'), all.slice(2));
  t.deepEqual(await ids('?start=2026-03-05T13:02:00%2B01:00&end=2026-03-05T12:03:00Z'), [all[2]] as string[]);
  t.deepEqual(await ids('?end=2026-03-05T13:01:00+01:00'), [all[0]] as string[]);
  t.deepEqual(await ids('?start=9999-12-31T23:59:59Z'), []);
  t.deepEqual(await ids('?start=0001-01-01T00:00:00Z'), all);
});

test('a malformed query is refused', async (t) => {
  const { call } = await open(t);
  const bad = [
    ...['limit=0', 'limit=501', 'limit=x', 'cursor=1', 'cursor=%00', 'start=yesterday', 'start=2026-03-05', 'end='],
    ...[`stream=${'s'.repeat(256)}`, `recordId=${'s'.repeat(256)}`, `cursor=${'1'.repeat(5000)}`],
  ];
  for (const query of bad) t.is((await call('GET', `${PATH}?${query}`)).status, 400, query);
  const { body } = await call('GET', `${PATH}?start=2026-99-05T12:00:00Z`);
  t.deepEqual(body as unknown, error(400, 'There is no such time: 2026-99-05T12:00:00Z'));
});

test('a recording is deleted with its file', async (t) => {
  const { call, root, ids, finish } = await open(t);
  const id = await finish(NOON);
  t.deepEqual((await call('DELETE', `${PATH}/${id}`)).body as unknown, { message: 'OK', statusCode: 200 });
  t.false(existsSync(join(root, '0.ts')));
  t.deepEqual(await ids(), []);
  t.deepEqual(
    (await call('DELETE', `${PATH}/${id}`)).body as unknown,
    error(404, `Could not find the recording: [${id}]`),
  );
});

test('applications of Server.xml and those made on demand have recordings, unknown ones have none', async (t) => {
  const { call, finish } = await open(t);
  const id = await finish(NOON, { vhost: 'second', app: 'gone' });
  t.is((await call('DELETE', `/v1/vhosts/second/apps/gone/recordings/${id}`)).status, 200);
  const other = await finish(NOON, { vhost: 'static' });
  t.is((await call('DELETE', `/v1/vhosts/static/apps/app/recordings/${other}`)).status, 200);
  for (const method of ['GET', 'DELETE'] as const) {
    t.is((await call(method, `${PATH}/${NONE}`)).status, 404);
    t.is((await call(method, `${PATH}/..%2F..%2Fetc`)).status, 404);
    t.is((await call(method, `/v1/vhosts/default/apps/none/recordings/${NONE}`)).status, 404);
    t.is((await call(method, `/v1/vhosts/none/apps/app/recordings/${NONE}`)).status, 404);
  }
  t.is((await call('GET', '/v1/vhosts/default/apps/none/recordings')).status, 404);
});

test('what is written, to be uploaded or another file now is not deleted', async (t) => {
  const busy = { journal: { has: async () => true } };
  const written = await open(t, busy);
  const id = await written.finish(NOON);
  t.deepEqual(
    (await written.call('DELETE', `${PATH}/${id}`)).body as unknown,
    error(409, `The recording is still written: [${id}]`),
  );
  const { call, root, finish } = await open(t);
  const cut = await finish(NOON);
  writeFileSync(join(root, '0.ts'), 'm');
  const refused = await call('DELETE', `${PATH}/${cut}`);
  t.is(refused.status, 409);
  t.regex(String(refused.body?.message), /its size has changed from 5 to 1 bytes/);
});

test('an unknown recording may be on a node that does not answer', async (t) => {
  const others = {
    self: { id: 'self' },
    ask: async () => [{ node: { id: 'n2' }, answer: undefined, error: kilnError('ownerSilent') }],
  } as unknown as OtherNodes;
  const { call } = await openApi(t, {}, sampleRegistry(), { others });
  for (const method of ['GET', 'DELETE'] as const) {
    const text = `Could not find the recording: [${NONE}]; these nodes did not answer: n2`;
    t.deepEqual((await call(method, `${PATH}/${NONE}`)).body as unknown, error(503, text));
  }
  const { body, headers } = await call('GET', PATH);
  t.deepEqual(body?.response, { recordings: [], silentNodes: ['n2'] });
  t.is(headers['x-kiln-stale'], 'true');
});

const page = (ids: readonly string[], cursor?: string) => ({
  recordings: ids.map((id) => ({ id })) as Parameters<typeof merged>[0][number]['recordings'],
  ...(cursor !== undefined && { cursor }),
});

test('pages of nodes are joined in order, as far as all nodes have looked', (t) => {
  t.deepEqual(merged([page(['a', 'd']), page(['b', 'c'])], 4, []), page(['a', 'b', 'c', 'd']));
  t.deepEqual(merged([page(['a', 'd'], 'd'), page(['b', 'c'])], 2, []), page(['a', 'b'], 'b'));
  t.deepEqual(merged([page(['a', 'd'], 'd'), page(['b', 'c'], 'c')], 4, []), page(['a', 'b', 'c'], 'c'));
  t.deepEqual(merged([page([], 'a9'), page(['b'])], 4, ['n2']), { ...page([], 'a9'), silentNodes: ['n2'] });
});
