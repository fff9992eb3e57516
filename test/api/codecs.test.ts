import Fastify from 'fastify';
import test from 'ava';
import { pino } from 'pino';
import { apiRoutes } from '../../src/api/app.ts';
import { CodecInventory } from '../../src/transcode/codecs.ts';
import { apiOptions, basic, openApi, TOKEN } from '../support/api/api.ts';

const PATH = '/v2/internals/codecs';

test('entries of the inventory, whole, with what is at work', async (t) => {
  const codecs = new CodecInventory({ log: pino({ level: 'silent' }) });
  const app = Fastify();
  await app.register(apiRoutes({ ...(await apiOptions()), codecs }));
  t.teardown(() => app.close());
  const read = async () => app.inject({ url: PATH, headers: { authorization: basic(TOKEN) } });
  const entries = await codecs.read();
  t.true(entries.length > 0);
  const answer = await read();
  t.is(answer.statusCode, 200);
  t.deepEqual(answer.json(), { message: 'OK', response: entries, statusCode: 200 });
  const keys = Object.keys((answer.json() as { response: object[] }).response[0] ?? {});
  t.deepEqual(keys, keys.toSorted(), 'keys are in alphabetical order');
  const ended = codecs.started({ mediaType: 'Video', name: 'x264:0' }, 'encoder');
  t.regex((await read()).body, /"encoder":1/);
  ended();
  t.notRegex((await read()).body, /"encoder":1/);
});

test('the list of codecs without an ffmpeg is empty, which is no error', async (t) => {
  const { call } = await openApi(t);
  const { status, body } = await call('GET', PATH);
  t.is(status, 200);
  t.deepEqual(body as unknown, { message: 'OK', response: [], statusCode: 200 });
});

test('version 1 has no inventory', async (t) => {
  const { call } = await openApi(t);
  t.is((await call('GET', '/v1/internals/codecs')).status, 404);
  t.is((await call('POST', PATH, {}, '{}')).status, 404);
});
