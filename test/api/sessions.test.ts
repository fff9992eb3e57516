import Fastify from 'fastify';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Application } from '../../src/core/application.ts';
import { Flow } from '../../src/core/counters.ts';
import type { InputStream } from '../../src/core/input-stream.ts';
import { LLHLS as FORM } from '../../src/publishers/hls/ll/index.ts';
import { PlaylistPublisher } from '../../src/publishers/hls/publisher.ts';
import { aloneWith } from '../support/cluster/alone.ts';
import { openApi } from '../support/api/api.ts';
import { H264_VIDEO, offerOf } from '../support/webrtc/offers.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../support/media/packets.ts';
import { startWebrtc } from '../support/webrtc/webrtc-server.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const LLHLS = { segmentDuration: 2, segmentCount: 3, chunkDuration: 0.5 };
const SESSIONS = '/v1/vhosts/default/apps/app/streams/s/sessions';
const STATISTICS = '/v1/stats/current/vhosts/default/apps/app/streams/s/sessions';
const OFFER = offerOf([H264_VIDEO]);
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d$/;
const MISSING = { message: 'Not Found', response: 'Could not find the session', statusCode: 404 };

/** A stream `s` with outputs `s` and `t`, both with LL-HLS and WebRTC, and the API over it. */
async function start(t: ExecutionContext) {
  const publishers = { llhls: LLHLS, webrtc: {} };
  const { registry, url } = await startWebrtc(t, {
    vhost: { applications: [{ name: 'app', type: 'live', publishers }] },
  });
  const llhls = new PlaylistPublisher(FORM, {
    registry,
    ...(await aloneWith(registry)),
    log: pino({ level: 'silent' }),
    tokenKeys: [Buffer.alloc(32, 7)],
  });
  const viewers = Fastify();
  await viewers.register(llhls.routes);
  t.teardown(async () => {
    await llhls.close();
    await viewers.close();
  });
  const application = registry.vhost('default').application('app');
  const input = goLive(application);
  const get = async (path: string) => viewers.inject(path);
  /** Loads a playlist and one of its chunklists; answers the URL of that. */
  const play = async (query = '', output = 's') => {
    const master = `/app/${output}/llhls.m3u8${query}`;
    const child = urisOf((await get(master)).body, master).at(-1) ?? '';
    await get(child);
    return child;
  };
  const whep = async (query = '', output = 's') => {
    const headers = { 'content-type': 'application/sdp' };
    return fetch(`${url}/app/${output}?direction=whep${query}`, { method: 'POST', headers, body: OFFER });
  };
  const { call } = await openApi(t, {}, registry);
  const list = async () => (await call('GET', SESSIONS)).body?.response as string[];
  return { registry, application, input, get, play, whep, call, list };
}

function goLive(application: Application): InputStream {
  const input = application.publish('s', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO, AUDIO]);
  for (const name of ['s', 't']) {
    const output = application.addOutput(input, name);
    output.setTracks([VIDEO, AUDIO]);
    application.announce(output);
    const span = { to: 3.1, gop: 60 };
    for (const packet of interleaved(videoPackets(VIDEO, span), audioPackets(AUDIO, span))) output.write(packet);
  }
  return input;
}

test('players of every output and publisher are sessions, by UUID or under the name of their URL', async (t) => {
  const { list, play, whep } = await start(t);
  t.deepEqual(await list(), []);
  t.is((await whep('&session=second')).status, 201);
  t.is((await whep('', 't')).status, 201);
  await play();
  await play('?session=first', 't');
  const names = await list();
  t.is(names.length, 4);
  t.deepEqual(names.filter((name) => name.length < 36).sort(), ['first', 'second']);
  for (const name of names.filter((one) => one.length >= 36))
    t.regex(name, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

test('a name is one session below its stream, whatever the output or publisher', async (t) => {
  const { list, play, whep, get } = await start(t);
  t.is((await whep('&session=one')).status, 201);
  t.is((await whep('&session=one')).status, 409);
  t.is((await whep('&session=one', 't')).status, 409);
  t.is((await get('/app/s/llhls.m3u8?session=one')).statusCode, 409);
  await play('?session=two');
  t.is((await whep('&session=two', 't')).status, 409);
  t.deepEqual((await list()).sort(), ['one', 'two']);
});

test('a kicked WebRTC player is disconnected and stays out under its name', async (t) => {
  const { call, list, whep, input } = await start(t);
  await whep('&session=%23a%2Fb%3F%25');
  t.deepEqual(await list(), ['#a/b?%']);
  const path = `${SESSIONS}/${encodeURIComponent('#a/b?%')}`;
  const { status, body } = await call('DELETE', path);
  t.is(status, 200);
  t.deepEqual(body as unknown, { message: 'OK', statusCode: 200 });
  t.deepEqual(await list(), []);
  t.is(input.counters.publishers.webrtc, 0);
  t.deepEqual((await call('DELETE', path)).body as unknown, MISSING);
  t.is((await whep('&session=%23a%2Fb%3F%25')).status, 403);
  t.is((await whep()).status, 201);
});

test('viewers behind a relay of the stream on its own node are listed once and kicked with the others of their name', async (t) => {
  const { application, call, list, whep, input } = await start(t);
  const relay = application.relay('s', 'before', { type: 'Ovt', kind: 'ovt' });
  const other = application.relay('another', 'another', { type: 'Ovt', kind: 'ovt' });
  const kicked: string[] = [];
  for (const [output, id] of [
    [relay, 'relayed'],
    [relay, 'both'],
    [other, 'elsewhere'],
  ] as const) {
    const leave = output.addSession({
      id,
      kind: 'webrtc',
      createdTime: 0,
      out: new Flow(0),
      kick: () => {
        kicked.push(id);
        leave();
      },
    });
  }
  t.is((await whep('&session=both')).status, 409);
  const leaveOwn = [...input.outputs.values()][0]?.addSession({
    id: 'both',
    kind: 'ovt',
    createdTime: 0,
    out: new Flow(0),
    kick: () => leaveOwn?.(),
  });
  t.deepEqual((await list()).sort(), ['both', 'relayed']);
  t.is((await call('GET', `${STATISTICS}/relayed`)).status, 200);
  t.is((await call('GET', `${STATISTICS}/elsewhere`)).status, 404);
  for (const id of ['both', 'relayed']) t.is((await call('DELETE', `${SESSIONS}/${id}`)).status, 200);
  t.deepEqual(kicked, ['both', 'relayed']);
  t.deepEqual(await list(), []);
  for (const id of ['both', 'relayed']) t.is((await whep(`&session=${id}`)).status, 403);
  t.is((await call('DELETE', `${SESSIONS}/elsewhere`)).status, 404);
  t.is((await whep('&session=elsewhere')).status, 201);
});

test('a kicked LL-HLS player gets 401 on its next request, others go on', async (t) => {
  const { call, get, list, play } = await start(t);
  const kicked = await play();
  const [id = ''] = await list();
  const other = await play('?session=other');
  t.is((await call('DELETE', `${SESSIONS}/${id}`)).status, 200);
  t.is((await get(kicked)).statusCode, 401);
  t.is((await get(other)).statusCode, 200);
  t.deepEqual(await list(), ['other']);
});

test('statistics of a session: its own bytes, throughputs and times', async (t) => {
  const { call, list, play, get } = await start(t);
  const url = await play();
  await play('?session=idle');
  const [id = ''] = await list();
  const before = (await call('GET', `${STATISTICS}/${id}`)).body?.response as Record<string, number>;
  const { body } = await get(url);
  const { status, body: answer, text } = await call('GET', `${STATISTICS}/${id}`);
  t.is(status, 200);
  const { createdTime, lastSentTime, lastUpdatedTime, totalBytesOut, ...throughputs } = answer?.response as Record<
    string,
    number
  >;
  for (const time of [createdTime, lastSentTime, lastUpdatedTime]) t.regex(String(time), LOCAL_TIME);
  t.is((totalBytesOut ?? 0) - (before.totalBytesOut ?? 0), Buffer.byteLength(body));
  t.deepEqual(Object.keys(throughputs), ['avgThroughputOut', 'lastThroughputOut', 'maxThroughputOut']);
  t.true(text.indexOf('lastUpdatedTime') < text.indexOf('maxThroughputOut'), 'keys are in alphabetical order');
  const idle = (await call('GET', `${STATISTICS}/idle`)).body?.response as Record<string, number>;
  t.true((idle.totalBytesOut ?? Infinity) < (totalBytesOut ?? 0));
});

test('a missing virtual host, application or stream is reported in order; a missing session in a form of its own', async (t) => {
  const { call } = await start(t);
  const vhost = '/vhosts/x/apps/app/streams/s/sessions';
  const application = '/vhosts/default/apps/x/streams/s/sessions';
  const stream = '/vhosts/default/apps/app/streams/x/sessions';
  const texts: [path: string, text: string][] = [
    [vhost, '[HTTP] Could not find the virtual host: [x] (404)'],
    [application, '[HTTP] Could not find the application: [default/x] (404)'],
    [stream, '[HTTP] Could not find the stream: [default/#default#app/x] (404)'],
  ];
  for (const [path, message] of texts) {
    for (const [method, url] of [
      ['GET', `/v1${path}`],
      ['DELETE', `/v1${path}/a`],
      ['GET', `/v1/stats/current${path}/a`],
    ] as const) {
      const { status, body } = await call(method, url);
      t.is(status, 404, url);
      t.deepEqual(body as unknown, { message, statusCode: 404 });
    }
  }
  for (const [method, url] of [
    ['DELETE', `${SESSIONS}/none`],
    ['GET', `${STATISTICS}/none`],
  ] as const) {
    const { status, body, headers } = await call(method, url);
    t.is(status, 404);
    t.deepEqual(body as unknown, MISSING);
    t.is(headers['content-type'], 'application/json;charset=UTF-8');
  }
  t.is((await call('GET', `${SESSIONS}/none`)).body?.message, '[HTTP] Controller not found (404)');
});

test('sessions that were kicked, or went with their stream or application, are counted out once', async (t) => {
  const { call, registry, application, input, play, whep } = await start(t);
  const levels = [input.counters, application.counters, application.vhost.counters, registry.counters];
  const connections = () =>
    levels.map(({ publishers, totalConnections }) => [publishers.llhls, publishers.webrtc, totalConnections]);
  // last, because players of playlists that ask for nothing have left after a while
  await whep('&session=gone');
  await whep();
  await play();
  await play('?session=kicked');
  t.deepEqual(
    connections(),
    levels.map(() => [2, 2, 4]),
  );
  for (let round = 0; round < 2; round++) {
    await call('DELETE', `${SESSIONS}/kicked`);
    await call('DELETE', `${SESSIONS}/gone`);
  }
  t.deepEqual(
    connections(),
    levels.map(() => [1, 1, 2]),
  );
  input.close('gone');
  t.deepEqual(
    connections(),
    levels.map(() => [0, 0, 0]),
  );
  t.is((await call('GET', SESSIONS)).status, 404);
  application.close('gone');
  registry.deleteVhost('default', 'gone');
  t.deepEqual(
    connections(),
    levels.map(() => [0, 0, 0]),
  );
});
