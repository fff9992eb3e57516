import test from 'ava';
import { joinSummaries, type StreamSummary } from '../../src/stats/stream-summary.ts';
import { openApi } from '../support/api.ts';
import { AUDIO, RTMP, VIDEO, video } from '../unit/core/support.ts';

test('live streams at a glance', async (t) => {
  const { call, registry } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/cluster/streams')).body?.response, []);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO, AUDIO]);
  application.addOutput(input, 'live_hd').setTracks([VIDEO]);
  for (let frame = 0; frame <= 75; frame++) input.write(video(frame / 25, frame % 25 === 0));
  const [row, ...others] = (await call('GET', '/v1/cluster/streams')).body?.response as StreamSummary[];
  t.deepEqual(others, []);
  t.like(row, {
    vhost: 'default',
    app: 'app',
    stream: 'live',
    relay: false,
    sourceType: 'Rtmp',
    video: { codec: 'H264', width: 1280, height: 720, framerate: 25, keyFrameInterval: 1, hasBframes: false },
    audio: { codec: 'AAC', samplerate: 48_000, channels: 2 },
    outputs: ['live_hd'],
    viewers: 0,
    lostPackets: 0,
    droppedPackets: 0,
  });
  input.counters.lost(3);
  input.counters.dropped(2, true);
  const named = async (query: string) =>
    (await call('GET', `/v1/cluster/streams?${query}`)).body?.response as StreamSummary[];
  t.like((await named('vhost=default&app=app&stream=live'))[0], { lostPackets: 3, droppedPackets: 2 });
  for (const query of ['vhost=other', 'app=other', 'vhost=default&app=app&stream=other'])
    t.deepEqual(await named(query), [], query);
});

test('a stream is one row with the viewers of all nodes, whichever node tells first', (t) => {
  const row = {
    vhost: 'v',
    app: 'a',
    stream: 's',
    sourceType: 'Rtmp',
    createdTime: '',
    outputs: [],
    bitrateIn: 5,
    jitter: 1.5,
    lostPackets: 4,
    droppedPackets: 6,
  };
  const owner: StreamSummary = { ...row, node: 'one', relay: false, bitrateOut: 10, viewers: 1 };
  const relay: StreamSummary = { ...row, node: 'two', relay: true, sourceType: 'Ovt', bitrateOut: 20, viewers: 2 };
  const joined = [{ ...owner, bitrateOut: 30, viewers: 3, droppedPackets: 12 }];
  t.deepEqual(joinSummaries([owner, relay]), joined);
  t.deepEqual(joinSummaries([relay, owner]), joined);
  t.is(joinSummaries([owner, { ...owner, stream: 'other' }]).length, 2);
});

test('the newest events, and how many can be asked for', async (t) => {
  const { call } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/cluster/events')).body?.response, []);
  for (const count of ['1', '99', '500'])
    t.is((await call('GET', `/v1/cluster/events?count=${count}`)).status, 200, count);
  for (const count of ['0', '501', '1000', '-1', '1.5', 'many', ''])
    t.is((await call('GET', `/v1/cluster/events?count=${count}`)).status, 400, count);
});
