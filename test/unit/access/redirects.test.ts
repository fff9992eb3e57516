import type { IncomingMessage } from 'node:http';
import test from 'ava';
import type { NodeRow } from '#cluster';
import { checkSignature } from '../../../src/access/policy/check.ts';
import { signUrl } from '../../../src/access/policy/sign.ts';
import { Redirects, type Arrival } from '../../../src/access/redirects.ts';
import type { Application } from '../../../src/core/application.ts';
import { Registry } from '../../../src/core/registry.ts';
import { createVhost } from '../../support/api/api.ts';

const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'k',
  algorithm: 'sha1',
} as const;
const ADDRESSES = { llhls: [], hls: [], webrtc: [] };
const MASTER = '/app/stream/llhls.m3u8';

const row = (id: string, shape: Partial<NodeRow> = {}, info: NodeRow['info'] = {}): NodeRow => ({
  id,
  incarnation: 'x',
  load: 0,
  full: false,
  info: { addresses: ADDRESSES, publicUrl: `http://${id}.example:3333`, ...info },
  address: undefined,
  state: 'ready',
  uptimeMs: 0,
  silentMs: 0,
  ...shape,
});
const FULL = row('me', { full: true });

interface Setup {
  readonly rows?: readonly NodeRow[];
  readonly secrets?: readonly string[];
  /** Id of the node that has the stream. */
  readonly owner?: string;
  /** `JWT` of the virtual host. */
  readonly jwt?: object;
}

/** Of the node `me`. */
function open({ rows = [FULL, row('a')], secrets = ['secret'], owner, jwt }: Setup = {}): Redirects {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*.example'] },
    ...(jwt && { jwt }),
    applications: [{ name: 'app', type: 'live', publishers: { llhls: {} } }],
  });
  return new Redirects({
    cluster: { self: { id: 'me', incarnation: 'x' }, nodes: () => rows },
    registry,
    directory: {
      known: (_: Application, stream: string) =>
        owner === undefined || stream !== 'stream' ? undefined : { owner: { id: owner, incarnation: 'x' } },
    },
    secrets,
  });
}

/** A request as it comes in at port 3333. */
function request(url: string, { port = 3333, proxied = {} as Record<string, string> } = {}) {
  const { host, hostname, pathname, search } = new URL(url);
  const raw = {
    url: pathname + search,
    headers: { host, ...proxied },
    socket: { remoteAddress: '192.0.2.1', remotePort: 4000, localPort: port },
  } as unknown as IncomingMessage;
  return { raw, url: pathname + search, hostname, ip: '192.0.2.1', viaProxy: Object.keys(proxied).length > 0 };
}

const arriving = (redirects: Redirects, url: string, via = {}): Arrival => redirects.arrival(request(url, via));

/** Where a full node sends who asks for a URL. */
function better(redirects: Redirects, url: string, via = {}, stream = 'stream'): string | undefined {
  const asked = request(url, via);
  return redirects.better(redirects.arrival(asked), { module: 'llhls', app: 'app', stream, path: asked.url });
}

/** The host of that URL. */
const hostOf = (url: string | undefined): string | undefined => url && new URL(url).hostname;

const LIVE = `http://live.example${MASTER}`;

test('a node that has room serves all that come', (t) => {
  t.is(better(open({ rows: [row('me'), row('a')] }), LIVE), undefined);
});

test('a full node redirects viewers to one that has room, serves them, and has noted where', (t) => {
  const rows = [
    FULL,
    row('full', { full: true }),
    row('draining', { state: 'draining' }),
    row('lost', { state: 'lost' }),
    row('untold', {}, { publicUrl: null }),
    row('elsewhere', {}, { addresses: { webrtc: [] } }),
  ];
  t.is(better(open({ rows }), LIVE), undefined);
  t.is(hostOf(better(open({ rows: [...rows, row('a')] }), LIVE)), 'a.example');
});

test('the owner of the stream is preferred, and all full nodes agree on another one', (t) => {
  const others = ['a', 'b', 'c', 'd'].map((id) => row(id));
  const rows = [FULL, ...others];
  for (const owner of ['a', 'b', 'c', 'd']) t.is(hostOf(better(open({ rows, owner }), LIVE)), `${owner}.example`);
  const fullOwner = [FULL, ...others.map((one) => (one.id === 'a' ? { ...one, full: true } : one))];
  t.not(hostOf(better(open({ rows: fullOwner, owner: 'a' }), LIVE)), 'a.example');
  t.is(hostOf(better(open({ rows }), LIVE)), hostOf(better(open({ rows: rows.toReversed() }), LIVE)));
  const chosen = Array.from({ length: 40 }, (_, n) => hostOf(better(open({ rows }), LIVE, {}, `stream${n}`)));
  t.is(new Set(chosen).size, 4);
});

test('redirects from https lead to https only', (t) => {
  const secure = { proxied: { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'live.example' } };
  t.is(better(open(), LIVE, secure), undefined);
  const rows = [FULL, row('a', {}, { publicUrl: 'https://a.example' })];
  t.is(hostOf(better(open({ rows }), LIVE, secure)), 'a.example');
  t.is(hostOf(better(open({ rows }), LIVE)), 'a.example');
});

test('an application that does not exist is on no other node either, nor is that of an unknown host', (t) => {
  const redirects = open();
  const asked = request('http://stranger.test/app/stream/llhls.m3u8');
  const wanted = { module: 'llhls', app: 'app', stream: 'stream', path: asked.url } as const;
  t.is(redirects.better(redirects.arrival(asked), wanted), undefined);
  t.is(redirects.better(arriving(redirects, LIVE), { ...wanted, app: 'none' }), undefined);
});

test('a redirected client is admitted as if it had come here at first, and stays', (t) => {
  const url = better(open(), `${LIVE}?b=2&session=me&a=%20x`) as string;
  t.true(url.startsWith(`http://a.example:3333${MASTER}?b=2&session=me&a=%20x&`));
  const there = open({ rows: [row('me', { full: true }), row('b')] });
  const arrival = arriving(there, url);
  t.like(arrival, {
    url: `http://live.example:3333${MASTER}?b=2&session=me&a=%20x`,
    isPortAssumed: true,
    hostName: 'live.example',
    search: 'b=2&session=me&a=%20x',
    isRedirected: true,
  });
  t.is(better(there, url), undefined);
});

test('a port that was named stays, and so does a scheme from a proxy', (t) => {
  const rows = [FULL, row('a', {}, { publicUrl: 'https://a.example' })];
  const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'live.example:8443' };
  const arrival = arriving(open(), better(open({ rows }), LIVE, { proxied }) as string);
  t.like(arrival, { url: `https://live.example:8443${MASTER}`, hostName: 'live.example', search: '' });
  t.is(arrival.isPortAssumed, undefined);
});

test('a signature of the host that was asked at first holds, and no other', (t) => {
  const signed = (url: string) => signUrl(url, { url_expire: Date.now() + 60_000 }, SIGNING);
  for (const [asked, port] of [
    [`http://live.example:80${MASTER}`, 3333],
    [`http://live.example:3333${MASTER}`, 3333],
  ] as const) {
    const url = better(open(), signed(asked).replace(':80', '')) as string;
    const { url: restored, isPortAssumed } = arriving(open(), url);
    t.notThrows(() => checkSignature(restored, SIGNING, isPortAssumed === true ? [port] : undefined));
    const forged = url.replace('live.example', 'other.example');
    t.throws(() => checkSignature(arriving(open(), forged).url, SIGNING, [port]));
  }
});

test('a redirect parameter that no node of the cluster wrote is a parameter like any other, and makes no loop', (t) => {
  const url = better(open(), LIVE) as string;
  for (const forged of [
    url.replace('live.example', 'other.example'),
    url.replace(/redirectedFrom=./, (start) => `${start}x`),
    `${LIVE}?redirectedFrom=http%3A%2F%2Fother.example`,
    `${LIVE}?redirectedFrom=`,
  ]) {
    const arrival = arriving(open(), forged);
    t.is(arrival.isRedirected, false);
    t.is(arrival.hostName, new URL(forged).hostname);
    const again = better(open(), forged) as string;
    t.true(arriving(open(), again).isRedirected);
    t.is(better(open(), again), undefined);
  }
});

test("all nodes understand each other's redirects while the secret is changed", (t) => {
  const url = (secrets: readonly string[]): string => better(open({ secrets }), LIVE) as string;
  const understands = (secrets: readonly string[], by: readonly string[]): boolean =>
    arriving(open({ secrets }), url(by)).isRedirected;
  t.true(understands(['old'], ['new', 'old']));
  t.true(understands(['new', 'old'], ['old']));
  t.true(understands(['new'], ['new', 'old']));
  t.false(understands(['new'], ['old']));
});

test('the schemes to which viewers may be sent', (t) => {
  t.deepEqual(open({ rows: [row('me', {}, { publicUrl: null })] }).schemes, []);
  const rows = [row('me'), row('a', {}, { publicUrl: 'https://a.example' }), row('b')];
  t.deepEqual(open({ rows }).schemes, ['http:', 'https:']);
});

test('a viewer whose token is in a header stays: browsers would not send it to another origin', (t) => {
  const url = `http://live.example:3333${MASTER}`;
  const bearing = { proxied: { authorization: 'Bearer token' } };
  t.not(better(open(), url, bearing), undefined);
  const redirects = open({ jwt: { secretKey: 'a secret of thirty-two characters' } });
  t.is(better(redirects, url, bearing), undefined);
  t.not(better(redirects, `${url}?token=token`), undefined);
});
