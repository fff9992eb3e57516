import test from 'ava';
import { Counters, Flow } from '../../../src/core/counters.ts';

test('throughput by windows of a second', (t) => {
  const flow = new Flow(10_000);
  flow.add(500, 10_400);
  t.like(flow, { totalBytes: 500, lastThroughput: 0, avgThroughput: 0, lastTime: 10_400 });
  flow.add(500, 11_000);
  t.like(flow, { totalBytes: 1000, lastThroughput: 1000, avgThroughput: 8000, maxThroughput: 8000, lastTime: 11_000 });
  flow.add(200, 12_000);
  t.like(flow, { lastThroughput: 200, avgThroughput: 1600, maxThroughput: 8000 });
});

test('a window that was longer is averaged over its length, and nothing decays', (t) => {
  const flow = new Flow(0);
  flow.add(1000, 4000);
  t.like(flow, { lastThroughput: 1000, avgThroughput: 2000, lastTime: 4000 });
});

test('traffic of a stream is counted by its parents, and stays when the stream has gone', (t) => {
  const server = new Counters();
  const vhost = new Counters(server);
  let stream: Counters | undefined = new Counters(vhost);
  const other = new Counters(vhost);
  stream.received(100);
  stream.sent(40);
  other.received(1);
  const leave = stream.viewer('webrtc');
  t.is(stream.in.totalBytes, 100);
  stream = undefined;
  for (const level of [vhost, server]) {
    t.is(level.in.totalBytes, 101);
    t.is(level.out.totalBytes, 40);
    t.is(level.publishers.webrtc, 1);
  }
  leave();
  for (const level of [vhost, server]) {
    t.is(level.publishers.webrtc, 0);
    t.is(level.totalConnections, 0);
    t.is(level.maxTotalConnections, 1);
    t.is(level.in.totalBytes, 101);
  }
  t.is(other.publishers.webrtc, 0);
});

test('the maximum is one of the sum, not a sum of maxima', (t) => {
  const parent = new Counters();
  const [first, second] = [new Counters(parent), new Counters(parent)];
  const leaveFirst = first.viewer('llhls');
  leaveFirst();
  second.viewer('webrtc');
  second.viewer('llhls');
  t.is(first.maxTotalConnections, 1);
  t.is(second.maxTotalConnections, 2);
  t.is(parent.maxTotalConnections, 2);
  t.is(parent.totalConnections, 2);
  t.deepEqual([parent.publishers.llhls, parent.publishers.webrtc], [1, 1]);
});

test('a viewer or source leaves once', (t) => {
  const counters = new Counters();
  const leave = counters.viewer('srt');
  const gone = counters.source('rtmp');
  t.deepEqual([counters.publishers.srt, counters.providers.rtmp, counters.totalConnections], [1, 1, 1]);
  for (let i = 0; i < 3; i++) {
    leave();
    gone();
  }
  t.deepEqual([counters.publishers.srt, counters.providers.rtmp, counters.totalConnections], [0, 0, 0]);
});
