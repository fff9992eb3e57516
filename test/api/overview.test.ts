import test from 'ava';
import { Flow, type PublisherKind } from '../../src/core/counters.ts';
import { NO_COUNTS } from '../../src/core/links.ts';
import type { OutputStream } from '../../src/core/output-stream.ts';
import type { SessionSummary } from '../../src/stats/session-summary.ts';
import { joinSummaries, type StreamSummary } from '../../src/stats/stream-summary.ts';
import { openApi } from '../support/api/api.ts';
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
  t.false('srt' in ((await named('stream=live'))[0] ?? {}), 'it has had no SRT connection');
  const link = (rttMs: number) => ({
    figures: { rttMs, capacity: 5000, bufferedMs: 60, counts: { ...NO_COUNTS, packets: 9, dropped: 1 } },
  });
  input.counters.link('in', link(12.345));
  const figures = { capacity: 5000, buffer: 60, ...NO_COUNTS, packets: 9, dropped: 1 };
  t.deepEqual((await named('stream=live'))[0]?.srt, { in: { connections: 1, rtt: 12.35, ...figures } });
  for (const query of ['vhost=other', 'app=other', 'vhost=default&app=app&stream=other'])
    t.deepEqual(await named(query), [], query);
});

test('a stream is one row with the viewers of all nodes, whichever node answers first', (t) => {
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
  const srt = { connections: 1, rtt: 5, capacity: 0, buffer: 1, ...NO_COUNTS, packets: 2 };
  const [first, second] = [
    { ...owner, srt: { in: srt, out: srt } },
    { ...relay, srt: { out: { ...srt, connections: 2, rtt: 4, capacity: 7, lost: 3 } } },
  ];
  t.deepEqual(joinSummaries([first, relay])[0]?.srt, { in: srt, out: srt });
  t.deepEqual(joinSummaries([first, second])[0]?.srt, {
    in: srt,
    out: { ...srt, connections: 3, capacity: 7, lost: 3, packets: 4 },
  });
});

test('the viewers of a stream by protocol, a part of them at a time', async (t) => {
  const { call, registry } = await openApi(t);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const [first, second] = ['live', 'live_hd'].map((name) => application.addOutput(input, name));
  const add = (output: OutputStream | undefined, id: string, kind: PublisherKind) => {
    const out = new Flow(Date.now());
    out.add(1000, Date.now());
    output?.addSession({ id, kind, createdTime: Date.now(), out, kick: () => {} });
  };
  add(first, 'c', 'llhls');
  add(second, 'a', 'webrtc');
  add(first, 'b', 'srt');
  const list = async (query: string) =>
    (await call('GET', `/v1/cluster/sessions?vhost=default&app=app&${query}`)).body?.response as SessionSummary[];
  const [one, ...others] = await list('stream=live');
  const { createdTime, bitrateOut, ...rest } = one as SessionSummary;
  t.deepEqual(rest, { id: 'a', node: 'kiln', publisher: 'webrtc', output: 'live_hd', totalBytesOut: 1000 });
  t.false(Number.isNaN(Date.parse(createdTime)));
  t.is(typeof bitrateOut, 'number');
  t.deepEqual(
    others.map(({ id, publisher }) => [id, publisher]),
    [
      ['b', 'srt'],
      ['c', 'llhls'],
    ],
  );
  const ids = async (query: string) => (await list(query)).map(({ id }) => id);
  t.deepEqual(await ids('stream=live&count=2'), ['a', 'b']);
  t.deepEqual(await ids('stream=live&count=2&after=b'), ['c']);
  t.deepEqual(await ids('stream=other'), []);
  t.is((await call('GET', '/v1/cluster/sessions?vhost=default&app=app')).status, 400);
  t.is((await call('GET', '/v1/cluster/sessions?vhost=default&app=app&stream=live&count=0')).status, 400);
});

test('the newest events, and how many can be asked for', async (t) => {
  const { call } = await openApi(t);
  t.deepEqual((await call('GET', '/v1/cluster/events')).body?.response, []);
  for (const count of ['1', '99', '500'])
    t.is((await call('GET', `/v1/cluster/events?count=${count}`)).status, 200, count);
  for (const count of ['0', '501', '1000', '-1', '1.5', 'many', ''])
    t.is((await call('GET', `/v1/cluster/events?count=${count}`)).status, 400, count);
});
