import test from 'ava';
import { Denial } from '../../../../src/access/denial.ts';
import { checkPermissions, sessionEnd } from '../../../../src/access/jwt/permissions.ts';
import type { AccessRequest } from '../../../../src/access/request.ts';
import { playRequest, publishRequest } from '../../../support/access/access.ts';

/** Why the claims do not permit a request; undefined: they do. */
async function refusal(claims: object, request: AccessRequest): Promise<string | undefined> {
  try {
    await checkPermissions({ ...claims }, request);
    return undefined;
  } catch (error) {
    if (error instanceof Denial) return error.kind;
    throw error;
  }
}

const kiln = (...permissions: readonly unknown[]) => ({ kiln_permissions: permissions });
const PLAY = playRequest({ protocol: 'llhls' });
const PUBLISH = publishRequest();
const RECORDED = playRequest({ protocol: 'playback' });

test('a token permits what its claims list, and nothing without them', async (t) => {
  t.is(await refusal({}, PLAY), 'tokenPermission');
  t.is(await refusal(kiln(), PLAY), 'tokenPermission');
  for (const [action, request, others] of [
    ['read', PLAY, [PUBLISH, RECORDED]],
    ['publish', PUBLISH, [PLAY, RECORDED]],
    ['playback', RECORDED, [PLAY, PUBLISH]],
  ] as const) {
    t.is(await refusal(kiln({ action, path: 'app/stream' }), request), undefined, action);
    for (const other of others) t.is(await refusal(kiln({ action, path: 'app/stream' }), other), 'tokenPermission');
  }
});

test('a path is one stream, every stream, or a regular expression', async (t) => {
  const permits = async (path: string | undefined): Promise<boolean> =>
    (await refusal(kiln({ action: 'read', ...(path !== undefined && { path }) }), PLAY)) === undefined;
  for (const path of ['app/stream', '', undefined, '~^app/', '~^app/str(eam|ing)$', '~stream'])
    t.true(await permits(path), path);
  for (const path of ['app', 'app/strea', 'app/stream/', '/app/stream', 'app/*', '~^stream', '~^app/x'])
    t.false(await permits(path), path);
  t.is(await refusal(kiln({ action: 'read', path: '~(' }), PLAY), 'tokenMalformed');
});

test('a permission may be for some protocols', async (t) => {
  const claims = kiln(
    { action: 'read', protocols: ['WebRTC', 'llhls'] },
    { action: 'publish', path: 'app/stream', protocols: ['srt'] },
  );
  t.is(await refusal(claims, PLAY), undefined);
  t.is(await refusal(claims, playRequest()), undefined);
  t.is(await refusal(claims, playRequest({ protocol: 'flv' })), 'tokenPermission');
  t.is(await refusal(claims, PUBLISH), 'tokenPermission');
  t.is(await refusal(claims, publishRequest({ protocol: 'srt' })), undefined);
});

test("MediaMTX's claim is read, also as a text of JSON", async (t) => {
  const permissions = [{ action: 'read', path: 'app/stream' }, { action: 'api' }];
  t.is(await refusal({ mediamtx_permissions: permissions }, PLAY), undefined);
  t.is(await refusal({ mediamtx_permissions: JSON.stringify(permissions) }, PLAY), undefined);
  t.is(await refusal({ mediamtx_permissions: permissions }, PUBLISH), 'tokenPermission');
  t.is(await refusal({ mediamtx_permissions: permissions, ...kiln({ action: 'publish' }) }, PUBLISH), undefined);
});

test('claims of another shape permit nothing', async (t) => {
  for (const odd of [null, 1, true, 'x', '{}', {}, [null], [1], [{}], [{ action: 1 }], [{ action: 'read', path: 1 }]])
    t.is(await refusal({ kiln_permissions: odd }, PLAY), 'tokenMalformed', JSON.stringify(odd));
  t.is(await refusal(kiln({ action: 'read', protocols: 'llhls' }), PLAY), 'tokenMalformed');
});

test('a claim ends sessions', (t) => {
  t.is(sessionEnd({}), undefined);
  t.is(sessionEnd({ kiln_session_exp: 1_800_000_000 }), 1_800_000_000_000);
  t.throws(() => sessionEnd({ kiln_session_exp: 'soon' }), { instanceOf: Denial });
});

test('an expression is matched in linear time, and a path that no stream has is not matched at all', async (t) => {
  const claims = kiln({ action: 'read', path: '~^app/([a-z0-9]+-?)+$' });
  t.is(await refusal(claims, playRequest({ stream: 'a-b-c' })), undefined);
  t.is(await refusal(claims, playRequest({ stream: `${'a'.repeat(250)}!` })), 'tokenPermission');
  t.is(await refusal(kiln({ action: 'read' }), playRequest({ stream: 'a'.repeat(60_000) })), 'tokenPermission');
});
