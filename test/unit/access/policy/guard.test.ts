import test from 'ava';
import { pino } from 'pino';
import { Access } from '../../../../src/access/access.ts';
import type { Guard } from '../../../../src/access/guard.ts';
import { signedPolicy } from '../../../../src/access/policy/guard.ts';
import { configuredPorts } from '../../../../src/access/policy/ports.ts';
import { signUrl, type PolicyFields } from '../../../../src/access/policy/sign.ts';
import { markOf } from '../../../../src/access/revocations.ts';
import type { AccessRequest } from '../../../../src/access/request.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { KilnError } from '../../../../src/errors.ts';
import { CLIENT, playRequest, publishRequest } from '../../../support/access/access.ts';
import { aloneWith } from '../../../support/cluster/alone.ts';
import { vhostConfig } from '../../core/support.ts';

const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'top-secret',
  algorithm: 'sha1',
} as const;
const HOUR = 3_600_000;

const CONFIG = {
  name: 'guarded',
  host: { names: ['*'] },
  applications: [],
  signedPolicy: {
    ...SIGNING,
    enables: { providers: 'rtmp, WebRTC,srt', publishers: 'webrtc,LLHLS,hlsv3,playback,thumbnail,srt,ovt,flv' },
  },
};

function vhost(config: object = CONFIG) {
  return new Registry().createVhost(vhostConfig(config), true);
}

function signed(url: string, fields: Partial<PolicyFields> = {}): string {
  return signUrl(url, { url_expire: Date.now() + HOUR, ...fields }, SIGNING);
}

/** Why a guard refuses a request; undefined: it does not. */
function refusal(guard: Guard, request: AccessRequest): string | undefined {
  try {
    guard(request, vhost());
    return undefined;
  } catch (error) {
    const { code, message, cause } = error as KilnError & { cause: { kind: string } };
    return code === 'accessDenied' && message === 'Access denied' ? cause.kind : String(error);
  }
}

const REQUESTS: readonly AccessRequest[] = [
  publishRequest({ url: 'rtmp://live.example:1935/app/stream' }),
  publishRequest({ protocol: 'srt', url: 'srt://live.example:9999/app/stream' }),
  publishRequest({ protocol: 'webrtc', url: 'https://live.example:3334/app/stream?direction=whip' }),
  playRequest({ url: 'wss://live.example:3334/app/stream/abr' }),
  playRequest({ url: 'https://live.example:3334/app/stream?direction=whep' }),
  playRequest({ protocol: 'llhls', url: 'https://live.example:3334/app/stream/master.m3u8' }),
  playRequest({ protocol: 'hlsv3', url: 'https://live.example:3334/app/stream/ts:master.m3u8' }),
  playRequest({ protocol: 'flv', url: 'http://live.example:3333/app/stream.flv' }),
  playRequest({ protocol: 'flv', url: 'http://live.example:3333/app/stream/low.ts' }),
  playRequest({ protocol: 'thumbnail', url: 'http://live.example:20080/app/stream/thumb.png' }),
  playRequest({
    protocol: 'playback',
    url: 'http://live.example:3333/app/stream/get?start=2026-03-05T12:00:00Z&duration=9',
  }),
  playRequest({ protocol: 'srt', url: 'srt://live.example:9998/app/stream/playlist' }),
  playRequest({ protocol: 'ovt', url: 'ovt://live.example:9000/app/stream' }),
];

for (const request of REQUESTS) {
  const { direction, protocol, url } = request;
  test(`${direction} ${protocol} ${url}: every rule`, (t) => {
    const guard = signedPolicy();
    const why = (fields: Partial<PolicyFields>, more: Partial<AccessRequest> = {}) =>
      refusal(guard, { ...request, url: signed(url, fields), ...more } as AccessRequest);
    t.is(refusal(guard, request), 'policyMissing');
    t.is(why({}), undefined);
    t.is(why({ url_expire: Date.now() - 1 }), 'policyExpired');
    t.is(why({ url_activate: Date.now() + HOUR }), 'policyInactive');
    t.is(why({ stream_expire: Date.now() - 1 }), 'policyExpired');
    t.is(why({ allow_ip: '192.0.2.0/24', real_ip: '192.0.2.1' }), undefined);
    t.is(why({ allow_ip: '198.51.100.0/24' }), 'policyAddress');
    t.is(why({ real_ip: '198.51.100.0/24' }), 'policyAddress');
    t.is(why({ real_ip: '198.51.100.0/24' }, { client: { ...CLIENT, realAddress: '198.51.100.1' } }), undefined);
    t.is(
      refusal(guard, { ...request, url: signed(url).replace('stream', 'other') } as AccessRequest),
      'policySignature',
    );
    t.is(refusal(guard, { ...request, url: `${signed(url)}x` } as AccessRequest), 'policySignature');
    // names that a client tells beside the URL
    t.is(refusal(guard, { ...request, url: signed(url), app: 'other' } as AccessRequest), 'policySignature');
    t.is(refusal(guard, { ...request, url: signed(url), stream: 'other' } as AccessRequest), 'policySignature');
    const end = Date.now() + HOUR;
    const url_expire = end + HOUR;
    const ends = signed(url, { stream_expire: end, url_expire });
    const policy = new URL(ends).searchParams.get('policy') ?? '';
    t.deepEqual(guard({ ...request, url: ends } as AccessRequest, vhost()), {
      until: end,
      marks: [markOf('policy', policy)],
    });
    // where it is not enabled it has no say
    const off = vhost({ ...CONFIG, signedPolicy: { ...SIGNING, enables: {} } });
    t.is(guard(request, off), undefined);
  });
}

test('the ports of the configuration count where the client named no port', (t) => {
  const bind = {
    providers: { rtmp: { port: 1936, tlsPort: 1937 }, srt: { port: [{ first: 9000, last: 9999 }] } },
    publishers: { llhls: { port: 3333, tlsPort: 3334 }, webrtc: { signalling: { port: 3335 } } },
  };
  const guard = signedPolicy(configuredPorts(bind as never));
  const asked = (from: string, request: AccessRequest) =>
    refusal(guard, {
      ...request,
      url: signed(from).replace(/^.*?(?=\/app\/)/, request.url.replace(/\/app\/.*/, '')),
      isPortAssumed: true,
    } as AccessRequest);
  const master = playRequest({ protocol: 'llhls', url: 'http://live.example:3333/app/stream/m.m3u8' });
  t.is(asked('https://live.example:3334/app/stream/m.m3u8', master), undefined);
  t.is(asked('https://live.example:3335/app/stream/m.m3u8', master), 'policySignature');
  t.is(
    asked('rtmps://live.example:1937/app/stream', publishRequest({ url: 'rtmp://live.example:1935/app/stream' })),
    undefined,
  );
  const srt = publishRequest({ protocol: 'srt', url: 'srt://live.example:9500/app/stream' });
  t.is(asked('srt://live.example:9003/app/stream', srt), undefined);
  t.is(asked('srt://live.example:9900/app/stream', srt), 'policySignature');
});

test('the operator learns the reason of a rejection, without secrets, and rejections are counted by class', async (t) => {
  const registry = new Registry();
  registry.createVhost(vhostConfig(CONFIG), true);
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const { access, cluster } = await aloneWith(registry, { log });
  t.teardown(async () => {
    access.close();
    await cluster.close();
  });
  t.true(access instanceof Access);
  const [rtmp, , , , whep] = REQUESTS as [AccessRequest, never, never, never, AccessRequest];
  const late = signed(rtmp.url, { url_expire: 1000 });
  await t.throwsAsync(access.admitPublisher({ ...rtmp, url: late } as never), { message: 'Access denied' });
  await t.throwsAsync(access.admitPublisher({ ...rtmp, url: late } as never), { message: 'Access denied' });
  const other = signed(whep.url.replace('stream', 'other'));
  const query = new URLSearchParams(other.replace(/.*\?/, ''));
  await t.throwsAsync(
    access.admitViewer({ ...whep, url: other, query } as never, () => undefined),
    { code: 'accessDenied' },
  );
  t.deepEqual(access.refusals.all(), [
    { direction: 'incoming', protocol: 'rtmp', reason: 'policyExpired', count: 2 },
    { direction: 'outgoing', protocol: 'webrtc', reason: 'policySignature', count: 1 },
  ]);
  const text = lines.join('');
  t.regex(text, /RTMP publisher refused: Access denied: the URL expired at 1970-01-01T00:00:01.000Z/);
  t.regex(text, /WebRTC viewer refused: Access denied: the signed URL is of another application or stream/);
  for (const secret of [
    'top-secret',
    'policy=',
    'signature=',
    query.get('policy') as string,
    query.get('signature') as string,
  ])
    t.false(text.includes(secret), secret);
});
