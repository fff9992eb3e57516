import test from 'ava';
import { Registry } from '../../src/core/registry.ts';
import { createVhost, openApi } from '../support/api/api.ts';

const APPS = '/v1/vhosts/default/apps';

/** Applications `app`, whose recordings are played, and `off`, neither with a stream that is live. */
async function start(t: Parameters<typeof openApi>[0]) {
  const registry = new Registry();
  const publishers = { llhls: {} };
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [
      { name: 'app', type: 'live', publishers: { ...publishers, playback: {} } },
      { name: 'off', type: 'live', publishers },
    ],
  });
  t.teardown(() => registry.close('the test is over'));
  const { call } = await openApi(t, {}, registry);
  const { recordingViewers } = registry.vhost('default').application('app');
  const ended: string[] = [];
  const play = (stream: string, id: string) => {
    const viewer = recordingViewers.add(stream, id, () => {
      ended.push(id);
      viewer.leave();
    });
    return viewer;
  };
  return { call, play, ended };
}

test('viewers of recordings of a stream that is not live are listed, shown and ended', async (t) => {
  const { call, play, ended } = await start(t);
  const sessions = `${APPS}/app/streams/s/sessions`;
  play('s', 'one').out.add(500, Date.now());
  play('s', 'two');
  play('other', 'three');
  t.deepEqual((await call('GET', sessions)).body?.response, ['one', 'two']);
  const statistics = `/v1/stats/current${sessions.slice('/v1'.length)}`;
  t.like((await call('GET', `${statistics}/one`)).body?.response, { totalBytesOut: 500 });
  const summaries = await call('GET', '/v1/cluster/sessions?vhost=default&app=app&stream=s');
  const [first, second] = summaries.body?.response as object[];
  t.like(first, { id: 'one', publisher: 'playback', output: 's', totalBytesOut: 500 });
  t.like(second, { id: 'two' });
  t.is((await call('DELETE', `${sessions}/one`)).status, 200);
  t.deepEqual(ended, ['one']);
  t.deepEqual((await call('GET', sessions)).body?.response, ['two']);
  for (const id of ['one', 'three', 'none']) t.is((await call('DELETE', `${sessions}/${id}`)).status, 404);
  t.is((await call('GET', `${statistics}/one`)).status, 404);
  t.deepEqual(ended, ['one']);
});

test('an id that has no session may come later', async (t) => {
  const { call, play } = await start(t);
  const sessions = `${APPS}/app/streams/s/sessions`;
  t.is((await call('DELETE', `${sessions}/one`)).status, 404);
  play('s', 'one');
  t.is((await call('DELETE', `${sessions}/one`)).status, 200);
});

test('a stream that is not live and has no such viewers is not found', async (t) => {
  const { call } = await start(t);
  for (const path of [`${APPS}/app/streams/s/sessions`, `${APPS}/off/streams/s/sessions`])
    t.is((await call('GET', path)).status, 404, path);
  t.is((await call('DELETE', `${APPS}/off/streams/s/sessions/one`)).status, 404);
  t.is((await call('GET', `${APPS}/none/streams/s/sessions`)).status, 404);
});
