import test from 'ava';
import type { Application } from '../../src/core/application.ts';
import { Counters, Flow } from '../../src/core/counters.ts';
import { localTime } from '../../src/lib/local-time.ts';
import type { QueueEntry } from '../../src/stats/queues.ts';
import { statisticsV2 } from '../../src/stats/v2.ts';
import { createVhost, openApi, sampleRegistry } from '../support/api/api.ts';
import { videoTrack } from '../support/media/packets.ts';

const VIEWERS = { file: 0, hlsv3: 0, llhls: 0, ovt: 0, push: 0, srt: 0, thumbnail: 0, webrtc: 0 };
const SOURCES = {
  file: 0,
  mpegts: 0,
  multiplex: 0,
  ovt: 0,
  rtmp: 0,
  rtsp: 0,
  rtsppull: 0,
  scheduled: 0,
  srt: 0,
  webrtc: 0,
};
const VHOST = '/vhosts/default';
const APPLICATION = `${VHOST}/apps/app`;
const STREAM = `${APPLICATION}/streams/s`;

function publish(application: Application) {
  const input = application.publish('s', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([videoTrack()]);
  return input;
}

test('v2: every field, in its unit', (t) => {
  const counters = new Counters();
  const start = counters.createdTime;
  counters.received(500, start + 400);
  counters.received(500, start + 1000);
  counters.received(100, start + 2000);
  counters.sent(250, start + 2000);
  t.deepEqual(statisticsV2(counters), {
    createdTime: localTime(start),
    lastUpdatedTime: localTime(start + 2000),
    providers: {
      avgThroughputIn: 800,
      connections: SOURCES,
      lastRecvTime: localTime(start + 2000),
      lastThroughputIn: 100,
      maxThroughputIn: 8000,
      totalBytesIn: 1100,
    },
    publishers: {
      avgThroughputOut: 1000,
      connections: VIEWERS,
      lastSentTime: localTime(start + 2000),
      lastThroughputOut: 250,
      maxThroughputOut: 1000,
      maxTotalConnectionTime: localTime(start),
      maxTotalConnections: 0,
      totalBytesOut: 250,
      totalConnections: 0,
    },
  });
});

test('v2 statistics of a stream roll up to its application and virtual host', async (t) => {
  const { call, registry } = await openApi(t);
  const input = publish(registry.vhost('default').application('app'));
  input.counters.received(1000);
  input.counters.sent(300);
  input.counters.viewer('llhls')();
  input.counters.viewer('webrtc');
  for (const level of [VHOST, APPLICATION, STREAM]) {
    const { status, body, text } = await call('GET', `/v2/stats/current${level}`);
    t.is(status, 200);
    const statistics = body?.response as Record<'providers' | 'publishers', object>;
    t.like(statistics.providers, { totalBytesIn: 1000, connections: { ...SOURCES, rtmp: 1 } });
    t.like(statistics.publishers, {
      totalBytesOut: 300,
      connections: { ...VIEWERS, webrtc: 1 },
      totalConnections: 1,
      maxTotalConnections: 1,
    });
    const keys = [...text.matchAll(/"(\w+)":/g)].map(([, key]) => key as string);
    t.deepEqual(keys.slice(0, 5), ['message', 'response', 'createdTime', 'lastUpdatedTime', 'providers']);
    t.deepEqual(
      keys.filter((key) => key.endsWith('Out')),
      ['avgThroughputOut', 'lastThroughputOut', 'maxThroughputOut', 'totalBytesOut'],
    );
  }
});

test('statistics of version 2 report what is missing in order; there are none of the server', async (t) => {
  const { call } = await openApi(t);
  const texts: [path: string, text: string][] = [
    ['/vhosts/x', 'Could not find the virtual host: [x]'],
    ['/vhosts/x/apps/app/streams/s', 'Could not find the virtual host: [x]'],
    ['/vhosts/default/apps/x', 'Could not find the application: [default/x]'],
    ['/vhosts/default/apps/app/streams/x', 'Could not find the stream: [default/#default#app/x]'],
    ['', 'Controller not found'],
  ];
  for (const [path, text] of texts) {
    const { status, body } = await call('GET', `/v2/stats/current${path}`);
    t.is(status, 404);
    t.deepEqual(body as unknown, { message: `[HTTP] ${text} (404)`, statusCode: 404 });
  }
});

for (const version of ['v1', 'v2'] as const) {
  test(`${version}: a virtual host keeps its counts when an application is restarted; the new one starts at 0`, async (t) => {
    const { call, registry } = await openApi(t);
    const vhost = { name: 'made', host: { names: ['made'] } };
    await call('POST', '/v1/vhosts', {}, JSON.stringify([vhost]));
    await call('POST', '/v1/vhosts/made/apps', {}, JSON.stringify([{ name: 'app', type: 'live' }]));
    const path = `/${version}/stats/current/vhosts/made`;
    const totals = async (of: string) => {
      const { text } = await call('GET', of);
      const number = (field: string) => Number(new RegExp(`"${field}":(-?\\d+)`).exec(text)?.[1]);
      return [number('totalBytesIn'), number('totalBytesOut'), number('totalConnections')];
    };
    for (let round = 1; round <= 3; round++) {
      const before = registry.vhost('made').application('app');
      const input = publish(before);
      input.counters.received(100);
      input.counters.sent(10);
      const output = before.addOutput(input, 's');
      output.addSession({ id: 'a', kind: 'webrtc', createdTime: 0, out: new Flow(0), kick: () => {} });
      const change = JSON.stringify({ providers: { rtmp: { maxConnection: round } } });
      t.is((await call('PATCH', '/v1/vhosts/made/apps/app', {}, change)).status, 200);
      t.not(registry.vhost('made').application('app'), before);
      t.deepEqual(await totals(path), [100 * round, 10 * round, 0]);
      t.deepEqual(await totals(`${path}/apps/app`), [0, 0, 0]);
      t.is(registry.vhost('made').counters.publishers.webrtc, 0);
      t.is(registry.vhost('made').counters.providers.rtmp, 0);
    }
  });
}

test('a queue is shown with every field, in alphabetical order, as long as its stream is there', async (t) => {
  const { call, registry } = await openApi(t);
  const input = publish(registry.vhost('default').application('app'));
  const output = registry.vhost('default').application('app').addOutput(input, 's_out');
  input.queue('encoder', { seconds: 3 });
  const file = output.queue('file', { bytes: 1000 });
  file.came += 300;
  file.resize(file.join(), 300);
  const read = async () => (await call('GET', '/v1/stats/current/internals/queues')).body?.response as QueueEntry[];
  const [encoder, { avgWaitingTime, id, ...recording } = {}] = await read();
  t.like(encoder, { type: 'Packet', threshold: 0, urn: 'mngq:v=#default#app:s=s:p=trs:n=encoder' });
  t.deepEqual([typeof avgWaitingTime, typeof id], ['number', 'number']);
  t.deepEqual(Object.keys(encoder ?? {}), Object.keys(encoder ?? {}).toSorted());
  t.like(recording, { drop: 0, peak: 300, size: 300, threshold: 1000, type: 'Byte', node: 'kiln' });
  input.close('the publisher left');
  t.deepEqual(await read(), []);
});

test('connections by Playback are shown where an application has it', async (t) => {
  const registry = sampleRegistry();
  const vhost = { name: 'third', host: { names: ['third'] } };
  createVhost(registry, {
    ...vhost,
    applications: [
      { name: 'app', type: 'live', publishers: { playback: {} } },
      { name: 'off', type: 'live' },
    ],
  });
  const { call } = await openApi(t, {}, registry);
  registry.vhost('third').application('app').counters.viewer('playback');
  const shown = async (path: string) => {
    const { body } = await call('GET', path);
    const answer = body?.response as { connections?: object; publishers?: { connections: object } };
    return answer.connections ?? answer.publishers?.connections;
  };
  const one = { ...VIEWERS, playback: 1 };
  t.deepEqual(await shown('/v1/stats/current'), one);
  for (const version of ['v1', 'v2']) {
    t.deepEqual(await shown(`/${version}/stats/current/vhosts/third`), one);
    t.deepEqual(await shown(`/${version}/stats/current/vhosts/third/apps/app`), one);
    t.deepEqual(await shown(`/${version}/stats/current/vhosts/third/apps/off`), VIEWERS);
    t.deepEqual(await shown(`/${version}/stats/current/vhosts/default`), VIEWERS);
  }
});

test('connections by players of RTMP and FLV are shown where these have a port', async (t) => {
  const registry = sampleRegistry();
  const shown = async (addedKinds?: readonly ('rtmp' | 'flv')[]) => {
    const { call } = await openApi(t, {}, registry, { ...(addedKinds && { addedKinds }) });
    const { body } = await call('GET', '/v1/stats/current');
    const answer = body?.response as { connections: object } | undefined;
    return answer?.connections;
  };
  t.deepEqual(await shown(), VIEWERS);
  t.deepEqual(await shown(['rtmp']), { ...VIEWERS, rtmp: 0 });
  t.deepEqual(await shown(['flv']), { ...VIEWERS, flv: 0 });
});
