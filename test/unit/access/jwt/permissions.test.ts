import test from 'ava';
import { Denial } from '../../../../src/access/denial.ts';
import { checkPermissions, sessionEnd } from '../../../../src/access/jwt/permissions.ts';
import type { AccessRequest } from '../../../../src/access/request.ts';
import { playRequest, publishRequest } from '../../../support/access/access.ts';

/** Why the claims do not permit a request; undefined: they do. */
function refusal(claims: object, request: AccessRequest): string | undefined {
  try {
    checkPermissions({ ...claims }, request);
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

test('a token permits what its claims list, and nothing without them', (t) => {
  t.is(refusal({}, PLAY), 'tokenPermission');
  t.is(refusal(kiln(), PLAY), 'tokenPermission');
  for (const [action, request, others] of [
    ['read', PLAY, [PUBLISH, RECORDED]],
    ['publish', PUBLISH, [PLAY, RECORDED]],
    ['playback', RECORDED, [PLAY, PUBLISH]],
  ] as const) {
    t.is(refusal(kiln({ action, path: 'app/stream' }), request), undefined, action);
    for (const other of others) t.is(refusal(kiln({ action, path: 'app/stream' }), other), 'tokenPermission');
  }
});

test('a path is one stream, every stream, or a regular expression', (t) => {
  const permits = (path: string | undefined): boolean =>
    refusal(kiln({ action: 'read', ...(path !== undefined && { path }) }), PLAY) === undefined;
  for (const path of ['app/stream', '', undefined, '~^app/', '~^app/str(eam|ing)$', '~stream'])
    t.true(permits(path), path);
  for (const path of ['app', 'app/strea', 'app/stream/', '/app/stream', 'app/*', '~^stream', '~^app/x'])
    t.false(permits(path), path);
  t.is(refusal(kiln({ action: 'read', path: '~(' }), PLAY), 'tokenMalformed');
});

test('a permission may be for some protocols', (t) => {
  const claims = kiln(
    { action: 'read', protocols: ['WebRTC', 'llhls'] },
    { action: 'publish', path: 'app/stream', protocols: ['srt'] },
  );
  t.is(refusal(claims, PLAY), undefined);
  t.is(refusal(claims, playRequest()), undefined);
  t.is(refusal(claims, playRequest({ protocol: 'flv' })), 'tokenPermission');
  t.is(refusal(claims, PUBLISH), 'tokenPermission');
  t.is(refusal(claims, publishRequest({ protocol: 'srt' })), undefined);
});

test("MediaMTX's claim is read, also as a text of JSON", (t) => {
  const permissions = [{ action: 'read', path: 'app/stream' }, { action: 'api' }];
  t.is(refusal({ mediamtx_permissions: permissions }, PLAY), undefined);
  t.is(refusal({ mediamtx_permissions: JSON.stringify(permissions) }, PLAY), undefined);
  t.is(refusal({ mediamtx_permissions: permissions }, PUBLISH), 'tokenPermission');
  t.is(refusal({ mediamtx_permissions: permissions, ...kiln({ action: 'publish' }) }, PUBLISH), undefined);
});

test('claims of another shape permit nothing', (t) => {
  for (const odd of [null, 1, true, 'x', '{}', {}, [null], [1], [{}], [{ action: 1 }], [{ action: 'read', path: 1 }]])
    t.is(refusal({ kiln_permissions: odd }, PLAY), 'tokenMalformed', JSON.stringify(odd));
  t.is(refusal(kiln({ action: 'read', protocols: 'llhls' }), PLAY), 'tokenMalformed');
});

test('a claim ends sessions', (t) => {
  t.is(sessionEnd({}), undefined);
  t.is(sessionEnd({ kiln_session_exp: 1_800_000_000 }), 1_800_000_000_000);
  t.throws(() => sessionEnd({ kiln_session_exp: 'soon' }), { instanceOf: Denial });
});
