import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { signUrl } from '../../../../../src/access/policy/sign.ts';
import { qualitySummaries } from '../../../../../src/quality/summary.ts';
import { HLS } from '../../../../../src/publishers/hls/ts/index.ts';
import { LLHLS as LLHLS_FORM } from '../../../../../src/publishers/hls/ll/index.ts';
import { createHttpPort } from '../../../../../src/web/http-port.ts';
import { openLlhls, type LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../../support/hls/llhls-nodes.ts';
import { urisOf } from '../../../../support/hls/playlist-uris.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const TRACKS = [videoTrack(), audioTrack()];
const REPORT = 'bl=2100,br=900,bs,d=500,mtp=4000,nor="part_0_1_2_video_x_llhls.m4s",ot=v,sf=h,sid="3f2a",st=ll,tb=1800';
const QUERY = `CMCD=${encodeURIComponent(REPORT)}`;
const HEADERS = {
  'cmcd-object': 'br=900,d=500,ot=v,tb=1800',
  'cmcd-request': 'bl=2100,mtp=4000',
  'cmcd-session': 'sf=h,sid="3f2a",st=ll',
  'cmcd-status': 'bs',
};
const SIGNING = {
  policyQueryKeyName: 'policy',
  signatureQueryKeyName: 'signature',
  secretKey: 'secret',
  algorithm: 'sha1',
} as const;

async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  const server = await openLlhls(t, { ...setup, llhls: { ...LLHLS, ...setup.llhls } });
  const { output } = server.goLive(TRACKS);
  feeder(output)(9);
  const rows = () => qualitySummaries(server.quality.streams, 'node');
  return { ...server, rows };
}

const withReport = (url: string): string => `${url}${url.includes('?') ? '&' : '?'}${QUERY}`;

test('media and media playlists are the same with a report, by query or header, without the router', async (t) => {
  const { publishers, children, app, rows } = await live(t, { hls: {} });
  const port = createHttpPort({ log: pino({ level: 'silent' }) });
  t.teardown(() => port.close(0));
  for (const { routes } of publishers) await port.app.register(routes);
  let routed = 0;
  port.app.addHook('onRequest', async () => void routed++);
  const base = `http://127.0.0.1:${await port.listen(['127.0.0.1'], 0)}`;
  const lists = [...(await children()), ...(await children('/app/stream/ts:playlist.m3u8'))];
  const urls = [...lists, `${lists.at(0)}?_HLS_msn=2&_HLS_part=1`];
  for (const list of lists) urls.push(...urisOf((await app.inject(list)).body, list).slice(0, 3));
  const read = async (url: string, headers = {}) => {
    const response = await fetch(base + url, { headers });
    const shown = [...response.headers].filter(([name]) => name !== 'date');
    return {
      status: response.status,
      headers: shown,
      body: Buffer.from(await response.arrayBuffer()).toString('latin1'),
    };
  };
  for (const url of urls) {
    const plain = await read(url);
    t.is(plain.status, 200, url);
    t.deepEqual(await read(withReport(url)), plain, url);
    t.deepEqual(await read(url, HEADERS), plain, url);
    // far longer than real ones
    t.deepEqual(await read(`${withReport(url)},com.example-x=${'y'.repeat(3000)}`), plain, url);
  }
  t.is(routed, 0);
  const [row] = rows();
  t.is(row?.reports, 3 * urls.length);
  t.is(row?.starvations, 3 * urls.length);
  t.like(row?.bitrateRatio, { average: 0.5 });
  const renditions = row?.renditions.map(({ rendition }) => rendition) ?? [];
  for (const rendition of ['audio_1', 'video_0']) t.true(renditions.includes(rendition), rendition);
});

test('renditions are named by tracks of LL-HLS, and by variants of HLS with MPEG-TS', (t) => {
  t.is(LLHLS_FORM.rendition('part_3_17_2_video_AbCdEfGh_llhls.m4s'), 'video_3');
  t.is(LLHLS_FORM.rendition('init_1_audio_AbCdEfGh_v2_llhls.m4s'), 'audio_1');
  t.is(LLHLS_FORM.rendition('chunklist_2_subtitle_AbCdEfGh_llhls.m3u8'), 'subtitle_2');
  t.is(LLHLS_FORM.rendition('llhls.m3u8'), undefined);
  t.is(HLS.rendition('seg_3_17_hls.ts'), 'variant_3');
  t.is(HLS.rendition('medialist_0_hls.m3u8'), 'variant_0');
  t.is(HLS.rendition('playlist.m3u8'), undefined);
});

test('a master playlist hands no report on to its children, and counts it', async (t) => {
  const { get, rows } = await live(t);
  const plain = (await get(`${MASTER}?a=b`)).body;
  const token = /\n([\w-]+)\/chunklist/.exec(plain)?.[1] ?? '';
  for (const url of [`${MASTER}?a=b&${QUERY}`, `${MASTER}?${QUERY}&a=b`]) {
    const { body } = await get(url);
    t.is(body.replace(/[\w-]+(?=\/chunklist)/g, token), plain);
  }
  const { body } = await get(`${MASTER}?a=b`, HEADERS);
  t.is(body.replace(/[\w-]+(?=\/chunklist)/g, token), plain);
  t.like(rows(), [{ reports: 3, renditions: [] }]);
});

test('malformed reports are counted, and players notice nothing', async (t) => {
  const { get, children, quality } = await live(t);
  const [list = ''] = await children();
  const plain = await get(list);
  for (const value of ['', '%', '%zz', 'a%3D', '%22', 'x'.repeat(5000), '%00'])
    t.is((await get(`${list}?CMCD=${value}`)).body, plain.body, value);
  t.is((await get(list, { 'cmcd-request': 'bl=(' })).body, plain.body);
  t.is(quality.counts.malformed, 8);
  t.deepEqual(quality.streams, []);
});

test('requests for what does not exist count for no rendition', async (t) => {
  const { get, children, quality } = await live(t);
  const [list = ''] = await children();
  const missing = list.replace(/chunklist_\d+/, 'chunklist_99');
  t.is((await get(withReport(missing))).statusCode, 404);
  t.is((await get(withReport('/app/none/llhls.m3u8'))).statusCode, 404);
  t.deepEqual(quality.streams, []);
});

test('a signed URL stays valid with a report anywhere in its query', async (t) => {
  const signedPolicy = { ...SIGNING, enables: { providers: '', publishers: 'llhls' } };
  const { get } = await live(t, { vhost: { signedPolicy: { ...signedPolicy } } });
  const origin = 'http://localhost:80';
  const signed = signUrl(`${origin}${MASTER}`, { url_expire: Date.now() + 60_000 }, SIGNING).slice(origin.length);
  const [path = '', query = ''] = signed.split('?');
  const [policy = '', signature = ''] = query.split('&');
  t.is((await get(signed)).statusCode, 200);
  for (const order of [
    [QUERY, policy, signature],
    [policy, QUERY, signature],
    [policy, signature, QUERY],
  ]) {
    const { statusCode, body } = await get(`${path}?${order.join('&')}`);
    t.is(statusCode, 200, order.join('&'));
    t.false(body.includes('CMCD'));
  }
  t.is((await get(`${path}?${policy}&${QUERY}`)).statusCode, 401);
});

test('a node that relays counts the reports of its viewers, and forwards none', async (t) => {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const open = (id: string) => openLlhlsNode(t, nodes, id, { llhls: LLHLS });
  const [a, b] = await Promise.all([open('a'), open('b')]);
  const { output } = await a.goLive(TRACKS);
  await untilKnown(b, a);
  feeder(output)(9);
  const { body } = await b.get(withReport(MASTER));
  const [list = ''] = urisOf(body, MASTER);
  const chunklist = await b.get(withReport(list));
  t.is(chunklist.statusCode, 200);
  const part = urisOf(chunklist.body, list).at(-1) ?? '';
  t.is((await b.get(withReport(part))).statusCode, 200);
  t.like(qualitySummaries(b.quality.streams, 'b'), [{ stream: 'stream', reports: 3, nodes: [{ node: 'b' }] }]);
  t.deepEqual(a.quality.streams, []);
  t.false(b.asked.join().includes('CMCD'));
});

test('figures of a stream end with its playlists', async (t) => {
  const { get, children, rows, application } = await live(t);
  const [list = ''] = await children();
  await get(withReport(list));
  t.is(rows().length, 1);
  application.outputs.get('stream')?.input.close('the test ends it');
  t.is(rows().length, 1, 'its playlists stay for half a minute');
  application.vhost.registry.close('the test is over');
  t.deepEqual(rows(), []);
});

const events = ['e=ps,sta=p,msd=740,sid="3f2a",ts=1790000000000,v=2', 'e=ps,sta=r,bl=(0),ts=1790000001000,v=2'];

test('event reports of a session are counted', async (t) => {
  const { app, children, rows } = await live(t, { llhls: { crossDomains: { url: ['https://page.example'] } } });
  const [list = ''] = await children();
  const url = list.replace(/[^/]+$/, 'cmcd');
  const post = (payload: string, headers: object = {}, at = url) =>
    app.inject({
      method: 'POST',
      url: at,
      payload,
      headers: { 'content-type': 'application/cmcd', origin: 'https://page.example', ...headers },
    });
  const { statusCode, headers, body } = await post(`${events.join('\n')}\n`);
  t.is(statusCode, 200);
  t.is(body, '');
  t.is(headers['access-control-allow-origin'], 'https://page.example');
  t.is((await post('e=t,bl=(800)', { 'content-type': 'text/plain;charset=UTF-8' })).statusCode, 200);
  t.like(rows(), [{ reports: 3, starvations: 1, startupSeconds: { count: 1 }, bufferSeconds: { count: 2 } }]);
  // errors
  t.is((await post('e=t', { 'content-type': 'application/json' })).statusCode, 415);
  t.is((await post('x'.repeat(70_000))).statusCode, 413);
  t.is((await post('e=t', {}, url.replace(/[\w-]+\/cmcd/, 'unknown/cmcd'))).statusCode, 404);
  t.is((await post('e=t', {}, url.replace('/stream/', '/other/'))).statusCode, 404);
  t.is((await post('e=t', {}, url.replace('/app/', '/none/'))).statusCode, 404);
  t.is((await post('e=t', {}, '/app/stream/cmcd')).statusCode, 404);
  t.is((await app.inject({ method: 'GET', url })).statusCode, 404);
  const preflight = await app.inject({
    method: 'OPTIONS',
    url,
    headers: { origin: 'https://page.example', 'access-control-request-headers': 'content-type' },
  });
  t.is(preflight.statusCode, 200);
  t.is(preflight.headers['access-control-allow-methods'], 'OPTIONS, POST');
  t.is(preflight.headers['access-control-allow-headers'], 'content-type');
});

test('event reports are bounded in number and rate', async (t) => {
  const { app, children, quality } = await live(t);
  const [list = ''] = await children();
  const post = (payload: string) =>
    app.inject({
      method: 'POST',
      url: list.replace(/[^/]+$/, 'cmcd'),
      payload,
      headers: { 'content-type': 'application/cmcd' },
    });
  t.is((await post('e=t\n'.repeat(5000))).statusCode, 200);
  t.is(quality.counts.event, 100);
  t.is((await post('\u0000\n"')).statusCode, 200);
  t.is(quality.counts.malformed, 2);
  const statuses = await Promise.all(Array.from({ length: 60 }, async () => (await post('e=t')).statusCode));
  t.true(statuses.includes(429));
});

test('in OriginMode, where there are no sessions, event reports name the stream', async (t) => {
  const { app, rows } = await live(t, { llhls: { originMode: true }, hls: {} });
  const post = (url: string) =>
    app.inject({ method: 'POST', url, payload: 'e=t,bl=(800)', headers: { 'content-type': 'application/cmcd' } });
  t.is((await post('/app/stream/cmcd')).statusCode, 200);
  t.is((await post('/app/other/cmcd')).statusCode, 404);
  t.is((await post('/app/stream/cmcd?format=ts')).statusCode, 404, 'HLS with MPEG-TS has sessions');
  t.like(rows(), [{ reports: 1 }]);
});
