import test from 'ava';
import { STANDBY } from '../../src/channels/standby/kind.ts';
import { openApi } from '../support/api/api.ts';

const STREAM = '/v1/vhosts/default/apps/app/streams/live';

test('a stream gets a standby task, and loses it', async (t) => {
  const { call, options } = await openApi(t);
  const act = (action: string, body?: unknown) =>
    call('POST', `${STREAM}:${action}`, {}, body === undefined ? undefined : JSON.stringify(body));
  const task = { kind: STANDBY, vhost: 'default', app: 'app', id: 'live' };
  t.like((await act('stopStandby')).body, { statusCode: 404 });
  t.like((await act('startStandby', { text: 'soon', maxDuration: 60 })).body, { statusCode: 200, message: 'OK' });
  t.like((await options.tasks.find(task))?.definition, {
    spec: { text: 'soon', maxDuration: 60 },
    persistent: true,
  });
  t.like((await act('startStandby')).body, { statusCode: 409 });
  t.like((await act('stopStandby')).body, { statusCode: 200 });
  t.is(await options.tasks.find(task), undefined);
  t.like((await act('startStandby')).body, { statusCode: 200 }, 'a body is not needed');
});

test('a standby task with parameters that are none is refused', async (t) => {
  const { call } = await openApi(t);
  for (const body of [[], { file: '' }, { text: 1 }, { maxDuration: -1 }, { other: true }, { silenceTimeoutMs: 0.5 }]) {
    const { body: answer } = await call('POST', `${STREAM}:startStandby`, {}, JSON.stringify(body));
    t.like(answer, { statusCode: 400 }, JSON.stringify(body));
  }
  const { body } = await call('POST', '/v1/vhosts/default/apps/none/streams/live:startStandby');
  t.like(body, { statusCode: 404 });
});
