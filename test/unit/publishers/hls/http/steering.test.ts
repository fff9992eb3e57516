import test, { type ExecutionContext } from 'ava';
import { signUrl } from '../../../../../src/access/policy/sign.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../../support/hls/llhls-nodes.ts';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { urisOf } from '../../../../support/hls/playlist-uris.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';

const MASTER = '/app/stream/llhls.m3u8';
const HOST = 'live.example';
const MODULES = { addresses: { llhls: [], hls: [] } };
const EVERYBODY = { crossDomains: { url: ['*'] } };
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5, ...EVERYBODY };

/** Two nodes behind `live.example`; the stream is at `a`. */
async function start(t: ExecutionContext, setup: LlhlsSetup = {}, urls = ['http://a.example', 'http://b.example:81']) {
  const nodes = MemoryCluster.create(t, 1);
  const [a, b] = [await openLlhlsNode(t, nodes, 'a', whole(setup)), await openLlhlsNode(t, nodes, 'b', whole(setup))];
  [a, b].forEach(({ cluster }, at) => {
    const publicUrl = urls[at];
    cluster.describe({
      load: 0.5,
      full: false,
      info: { ...MODULES, ...(publicUrl !== undefined && { publicUrl }) },
    });
  });
  const known = (shape: string): Promise<boolean> =>
    until('the nodes know each other', () =>
      [a, b].every(({ cluster }) => JSON.stringify(cluster.nodes().map(({ full, info }) => [full, info])) === shape),
    );
  const described = urls.map((publicUrl) => [false, { ...MODULES, publicUrl }]);
  await known(JSON.stringify(urls.length === 0 ? [MODULES, MODULES].map((info) => [false, info]) : described));
  const { output } = await a.goLive([videoTrack(), audioTrack()]);
  feeder(output)(9);
  await untilKnown(b, a);
  const get = (node: typeof a, url: string, headers: Record<string, string> = {}) =>
    node.get(url, { host: HOST, ...headers });
  const manifestOf = async (node: typeof a, master = MASTER, headers: Record<string, string> = {}) => {
    const { body } = await get(node, master, headers);
    const [, uri = ''] = /#EXT-X-CONTENT-STEERING:SERVER-URI="([^"]*)"/.exec(body) ?? [];
    return { master: body, uri: new URL(uri, `http://${HOST}${master}`) };
  };
  return { a, b, get, manifestOf };
}

const whole = ({ llhls, hls, ...rest }: LlhlsSetup): LlhlsSetup => ({
  ...rest,
  llhls: { ...LLHLS, ...llhls },
  ...(hls !== undefined && { hls: { ...EVERYBODY, ...hls } }),
});

test('each node answers with pathways whose URIs lead to what the master playlist leads to', async (t) => {
  const { a, b, get, manifestOf } = await start(t);
  for (const [asked, answering] of [
    [a, b],
    [b, a],
  ] as const) {
    const { master, uri } = await manifestOf(asked, `${MASTER}?who=me&x=1`);
    t.is(master.match(/STABLE-VARIANT-ID="/g)?.length, 1);
    t.is(master.match(/STABLE-RENDITION-ID="/g)?.length, 1);
    const answer = await get(answering, `${uri.pathname}${uri.search}&_HLS_pathway=.&_HLS_throughput=1000`);
    t.is(answer.statusCode, 200, answer.body);
    t.is(answer.headers['content-type'], 'application/vnd.apple.steering-list');
    t.is(answer.headers['cache-control'], 'no-cache, no-store');
    t.is(answer.headers['access-control-allow-origin'], '*');
    const { VERSION, TTL, ...manifest } = answer.json();
    t.deepEqual([VERSION, TTL], [1, 15]);
    t.deepEqual(manifest['PATHWAY-PRIORITY'].toSorted(), ['.', 'a', 'b']);
    t.is(manifest['PATHWAY-PRIORITY'].at(-1), '.');
    const clones = new Map<string, Record<string, Record<string, string>>>(
      manifest['PATHWAY-CLONES'].map((clone: Record<string, unknown>) => [clone['ID'], clone['URI-REPLACEMENT']]),
    );
    t.is(clones.get('a')?.['HOST'] as unknown, 'a.example');
    t.is(clones.get('b')?.['HOST'], undefined);
    const listed = urisOf(master, `http://${HOST}${MASTER}`).filter((one) => one.includes('chunklist'));
    for (const [id, origin] of [
      ['a', 'http://a.example'],
      ['b', 'http://b.example:81'],
    ] as const) {
      const replaced = { ...clones.get(id)?.['PER-VARIANT-URIS'], ...clones.get(id)?.['PER-RENDITION-URIS'] };
      const there = listed.map((one) => one.replace(`http://${HOST}`, origin));
      t.deepEqual(Object.values(replaced).toSorted(), there.toSorted());
      // the host of a node is none of the virtual host's
      for (const url of there) {
        const { host, pathname, search } = new URL(url);
        for (const node of [a, b]) t.is((await get(node, pathname + search, { host })).statusCode, 200, url);
      }
    }
  }
});

test('a player keeps its pathway, also when its node is full: others do not get that one', async (t) => {
  const { a, b, get, manifestOf } = await start(t);
  const { uri } = await manifestOf(a);
  const order = async (current: string): Promise<string[]> =>
    (await get(b, `${uri.pathname}${uri.search}&_HLS_pathway=${current}`)).json()['PATHWAY-PRIORITY'];
  for (const id of ['a', 'b']) t.is((await order(id))[0], id);
  b.cluster.describe({ load: 1, full: true, info: { ...MODULES, publicUrl: 'http://b.example:81' } });
  await until('it is known', async () => !(await order('a')).includes('b'));
  t.deepEqual(await order('a'), ['a', '.']);
  t.deepEqual(await order('b'), ['b', 'a', '.']);
});

test('HLS with MPEG-TS has manifests of its own', async (t) => {
  const { a, b, get, manifestOf } = await start(t, { hls: { segmentDuration: 2, segmentCount: 3 } });
  const { master, uri } = await manifestOf(a, '/app/stream/ts:playlist.m3u8');
  t.regex(uri.href, /\/steering\.json\?format=ts&playlist=/);
  const [list = ''] = urisOf(master, 'http://live.example/app/stream/ts:playlist.m3u8').filter((one) =>
    one.includes('medialist'),
  );
  const { 'PATHWAY-CLONES': clones } = (await get(b, uri.pathname + uri.search)).json();
  const uris = clones.map((clone: Record<string, Record<string, object>>) =>
    Object.values(clone['URI-REPLACEMENT']?.['PER-VARIANT-URIS'] ?? {}),
  );
  t.deepEqual(
    uris.flat().toSorted(),
    ['http://a.example', 'http://b.example:81'].map((origin) => list.replace('http://live.example', origin)),
  );
});

test('masters have no manifest where players have no choice, or may not go elsewhere', async (t) => {
  const tagged = async (setup: LlhlsSetup, urls?: string[], headers = {}): Promise<boolean> => {
    const { a, manifestOf } = await start(t, setup, urls);
    return (await manifestOf(a, MASTER, headers)).master.includes('EXT-X-CONTENT-STEERING');
  };
  t.true(await tagged({}));
  t.false(await tagged({}, []));
  t.false(await tagged({ llhls: { originMode: true } }));
  t.false(await tagged({ llhls: { crossDomains: { url: [] } } }));
  t.false(await tagged({}, undefined, { origin: 'https://page.example' }), 'from https to https alone');
  t.false(await tagged({}, undefined, { authorization: 'Bearer x' }));
  t.false(await tagged({}, undefined, { cookie: 'a=b' }));
  const page = { llhls: { crossDomains: { url: ['http://page.example'] } } };
  t.true(await tagged(page, undefined, { origin: 'http://page.example' }));
  t.false(await tagged(page, undefined, {}));
});

test('requests for manifests are answered or refused clearly', async (t) => {
  const { b, get, manifestOf, a } = await start(t);
  const { uri } = await manifestOf(a);
  const cases: [url: string, status: number][] = [
    ['/app/stream/steering.json', 200],
    ['/app/other/steering.json', 404],
    ['/other/stream/steering.json', 404],
    [uri.pathname.replace(/\/stream\/./, '/stream/x'), 401],
    [uri.pathname, 200],
    [`${uri.pathname}?playlist=none`, 404],
    [`${uri.pathname}?playlist=llhls&_HLS_pathway=%22&_HLS_throughput=x`, 200],
    [uri.pathname.replace('/stream/', '/other/'), 401],
  ];
  for (const [url, status] of cases) {
    const answer = await get(b, url);
    t.is(answer.statusCode, status, url);
    if (status === 200) t.is(answer.json()['PATHWAY-PRIORITY'].at(-1), '.', url);
  }
  t.deepEqual((await get(b, '/app/stream/steering.json')).json()['PATHWAY-CLONES'], [
    { 'BASE-ID': '.', ID: 'a', 'URI-REPLACEMENT': { HOST: 'a.example' } },
  ]);
  const preflight = await b.app.inject({ method: 'OPTIONS', url: uri.pathname, headers: { host: HOST } });
  t.is(preflight.headers['access-control-allow-origin'], '*');
  const head = await b.app.inject({ method: 'HEAD', url: uri.pathname, headers: { host: HOST } });
  t.deepEqual([head.statusCode, head.body], [200, '']);
  t.is((await get(b, uri.pathname, { host: 'bad host' })).statusCode, 404);
});

test('guarded streams have manifests for admitted players', async (t) => {
  const signing = {
    ...{ policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'secret' },
    algorithm: 'sha1',
  } as const;
  const { algorithm: _, ...names } = signing;
  const { a, b, get, manifestOf } = await start(t, {
    vhost: { signedPolicy: { ...names, enables: { publishers: 'llhls' } } },
  });
  t.is((await get(b, '/app/stream/steering.json')).statusCode, 401);
  const origin = `http://${HOST}:80`;
  const signed = signUrl(`${origin}${MASTER}`, { url_expire: Date.now() + 60_000 }, signing).slice(origin.length);
  const { master, uri } = await manifestOf(a, signed, { host: `${HOST}:80` });
  t.regex(master, /STEERING/);
  const manifest = (await get(b, uri.pathname + uri.search)).json();
  t.is(manifest['PATHWAY-PRIORITY'].length, 3);
  const [list] = Object.values<string>(manifest['PATHWAY-CLONES'][0]['URI-REPLACEMENT']['PER-VARIANT-URIS']);
  const { host, pathname, search } = new URL(list ?? '');
  t.is((await get(b, pathname + search, { host })).statusCode, 200);
});
