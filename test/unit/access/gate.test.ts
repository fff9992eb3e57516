import test from 'ava';
import { checkAccess } from '../../../src/access/gate.ts';
import { Registry } from '../../../src/core/registry.ts';
import { vhostConfig } from '../core/support.ts';

const POLICY = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'secret' };

function vhost(control: object) {
  const config = vhostConfig({ name: 'guarded', host: { names: ['*'] }, applications: [], ...control });
  return new Registry().createVhost(config, true);
}

test('without access control everybody may come in', (t) => {
  t.notThrows(() => checkAccess(vhost({}), 'providers', 'rtmp'));
});

test('a module that a signed policy guards refuses, whatever its case; others do not', (t) => {
  const guarded = vhost({ signedPolicy: { ...POLICY, enables: { providers: ' RTMP, srt', publishers: 'llhls' } } });
  t.throws(() => checkAccess(guarded, 'providers', 'rtmp'), { code: 'accessDenied' });
  t.throws(() => checkAccess(guarded, 'publishers', 'llhls'), { code: 'accessDenied' });
  t.notThrows(() => checkAccess(guarded, 'publishers', 'webrtc'));
  t.notThrows(() => checkAccess(guarded, 'providers', 'webrtc'));
});

test('admission webhooks guard in the same way', (t) => {
  const guarded = vhost({
    admissionWebhooks: { controlServerUrl: 'http://127.0.0.1/', enables: { providers: 'rtmp' } },
  });
  t.throws(() => checkAccess(guarded, 'providers', 'rtmp'), { code: 'accessDenied' });
  t.notThrows(() => checkAccess(guarded, 'publishers', 'rtmp'));
});
