import test, { type ExecutionContext } from 'ava';
import type { Revocation } from '../../src/access/revocations.ts';
import { openApi } from '../support/api/api.ts';

const PATH = '/v1/cluster/revocations';
const LATER = '2099-01-01T00:00:00Z';

async function callsOf(t: ExecutionContext) {
  const { call } = await openApi(t);
  return (method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown) =>
    call(method, path, {}, body === undefined ? undefined : JSON.stringify(body));
}

test('revocations are made, listed and taken back; a policy is not shown', async (t) => {
  const call = await callsOf(t);
  const list = async () => (await call('GET', PATH)).body?.response as Revocation[];
  t.deepEqual(await list(), []);
  const made = await call('POST', PATH, { jti: 'one', app: 'app', expires: '2099-01-01T01:00:00+01:00' });
  t.is(made.status, 200);
  const { id } = made.body?.response as Revocation;
  t.deepEqual(await list(), [{ id, jti: 'one', app: 'app', expires: '2099-01-01T00:00:00.000Z' }]);
  const policy = await call('POST', PATH, { policy: 'c2VjcmV0', expires: LATER });
  t.false(JSON.stringify([policy.body, await list()]).includes('c2VjcmV0'));
  t.is((await call('DELETE', `${PATH}/${id}`)).status, 200);
  t.is((await call('DELETE', `${PATH}/${id}`)).status, 404);
  t.is((await list()).length, 1);
});

test('a revocation of nothing, of unknown members, or for no time is refused', async (t) => {
  const call = await callsOf(t);
  for (const body of [
    undefined,
    {},
    [],
    { expires: LATER },
    { jti: 'one' },
    { app: 'app', stream: 'stream', expires: LATER },
    { jti: '', expires: LATER },
    { jti: 7, expires: LATER },
    { jti: 'x'.repeat(513), expires: LATER },
    { jti: 'one', expires: '2000-01-01T00:00:00Z' },
    { jti: 'one', expires: 'tomorrow' },
    { jti: 'one', expires: '2099-13-01T00:00:00Z' },
    { jti: 'one', expires: 4e12 },
    { jti: 'one', token: 'x', expires: LATER },
    { address: 'here', expires: LATER },
  ])
    t.is((await call('POST', PATH, body)).status, 400, JSON.stringify(body));
  t.deepEqual((await call('GET', PATH)).body?.response, []);
});
