import test from 'ava';
import { isGuarded } from '../../../src/config/enables.ts';
import { vhostConfig } from '../core/support.ts';

const POLICY = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'secret' };

function vhost(control: object) {
  return vhostConfig({ name: 'guarded', host: { names: ['*'] }, applications: [], ...control });
}

const incoming = (protocol: 'rtmp' | 'webrtc') => ({ direction: 'incoming', protocol }) as const;
const outgoing = (protocol: 'llhls' | 'webrtc') => ({ direction: 'outgoing', protocol }) as const;

test('clients are admitted where no access control is configured', (t) => {
  t.false(isGuarded(vhost({}), incoming('rtmp')));
});

test('modules are guarded that a signed policy enables, whatever their case; others are not', (t) => {
  const guarded = vhost({ signedPolicy: { ...POLICY, enables: { providers: ' RTMP, srt', publishers: 'llhls' } } });
  t.true(isGuarded(guarded, incoming('rtmp')));
  t.true(isGuarded(guarded, outgoing('llhls')));
  t.false(isGuarded(guarded, outgoing('webrtc')));
  t.false(isGuarded(guarded, incoming('webrtc')));
});

test('admission webhooks guard in the same way', (t) => {
  const guarded = vhost({
    admissionWebhooks: { controlServerUrl: 'http://127.0.0.1/', enables: { providers: 'rtmp', publishers: 'webrtc' } },
  });
  t.true(isGuarded(guarded, incoming('rtmp')));
  t.false(isGuarded(guarded, outgoing('llhls')));
});
