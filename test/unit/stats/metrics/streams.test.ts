import test from 'ava';
import type { Application } from '../../../../src/core/application.ts';
import { Flow, type PublisherKind } from '../../../../src/core/counters.ts';
import type { Consumer } from '../../../../src/core/reader.ts';
import { AllStreams } from '../../../../src/stats/metrics/all-streams.ts';
import { Exposition } from '../../../../src/stats/metrics/exposition.ts';
import { NO_COUNTS } from '../../../../src/core/links.ts';
import { linkFamilies } from '../../../../src/stats/metrics/links.ts';
import { streamFamilies } from '../../../../src/stats/metrics/streams.ts';
import { trafficFamilies } from '../../../../src/stats/metrics/traffic.ts';
import { sampleRegistry } from '../../../support/api/api.ts';
import { documented, linesOf, valueOf } from '../../../support/api/exposition.ts';
import { audioTrack, videoTrack } from '../../../support/media/packets.ts';

const OPTIONS = { replace: false, maxConnections: 0 };

function setUp(max?: number) {
  const registry = sampleRegistry();
  const streams = new AllStreams(registry, max);
  const refusals = [{ direction: 'incoming', protocol: 'rtmp', reason: 'streamExists', count: 3 }] as const;
  const exposition = new Exposition([
    ...streamFamilies(streams),
    ...linkFamilies(streams),
    ...trafficFamilies({ registry, refusals: () => refusals }),
  ]);
  const application = registry.vhost('default').application('app');
  return {
    registry,
    application,
    scrape: async () => documented((await exposition.scrape(undefined)).body.toString()),
  };
}

function publish(application: Application, name: string) {
  const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, OPTIONS);
  const tracks = [videoTrack(), audioTrack()] as const;
  input.setTracks(tracks);
  return { input, tracks, output: application.addOutput(input, name) };
}

function session(id: string, kind: PublisherKind) {
  return { id, kind, createdTime: 0, out: new Flow(0), kick: () => {} };
}

test('metrics of a stream and its tracks', async (t) => {
  const { application, scrape } = setUp();
  const { input, tracks, output } = publish(application, 'live');
  const [video] = tracks;
  input.counters.received(1000);
  output.addSession(session('a', 'webrtc'));
  const leave = output.addSession(session('b', 'llhls'));
  output.counters.sentTo('llhls', 500);
  // two seconds of 25 frames, with a key frame each
  const step = video.timebase.den / 25;
  for (let i = 0; i <= 50; i++)
    input.write({
      track: video,
      dts: i * step,
      pts: i * step,
      duration: step,
      key: i % 25 === 0,
      data: Buffer.alloc(100),
    });
  const stream = { vhost: 'default', application: 'app', stream: 'live' };
  const first = await scrape();
  t.is(valueOf(first, 'kiln_stream_info', { ...stream, source: 'Rtmp' }), 1);
  t.is(valueOf(first, 'kiln_stream_received_bytes_total', stream), 1000);
  t.is(valueOf(first, 'kiln_stream_sent_bytes_total', stream), 500);
  t.is(valueOf(first, 'kiln_viewer_sent_bytes_total', { protocol: 'llhls' }), 500);
  t.is(valueOf(first, 'kiln_stream_reconnects_total', stream), 0);
  const track = { ...stream, track: '0', kind: 'video' };
  t.is(valueOf(first, 'kiln_stream_track_info', { ...track, codec: 'H264' }), 1);
  t.is(valueOf(first, 'kiln_stream_track_bytes_per_second', track), 2500);
  t.is(valueOf(first, 'kiln_stream_track_frames_per_second', track), 25);
  t.is(valueOf(first, 'kiln_stream_track_key_frame_interval_seconds', track), 1);
  t.is(valueOf(first, 'kiln_stream_track_height_pixels', track), 360);
  t.is(valueOf(first, 'kiln_stream_viewers', { ...stream, protocol: 'llhls' }), 1);
  t.is(valueOf(first, 'kiln_sources', { application: 'app', provider: 'rtmp' }), 1);
  t.is(valueOf(first, 'kiln_refusals_total', { protocol: 'rtmp', reason: 'streamExists' }), 3);
  leave();
  const second = await scrape();
  t.is(valueOf(second, 'kiln_stream_viewers', { ...stream, protocol: 'llhls' }), 0);
  t.is(valueOf(second, 'kiln_viewers', { application: 'app', protocol: 'webrtc' }), 1);
  t.is(valueOf(second, 'kiln_viewer_sessions_total', { application: 'app', protocol: 'llhls' }), 1);
});

test('metrics of SRT connections by stream and direction, and none of other streams', async (t) => {
  const { application, scrape } = setUp();
  const { input, output } = publish(application, 'live');
  t.false((await scrape()).includes('kiln_stream_srt_rtt_seconds{'));
  const link = (rttMs: number, lost: number) => ({
    figures: { rttMs, capacity: 8000 * rttMs, bufferedMs: 120, counts: { ...NO_COUNTS, packets: 100, lost } },
  });
  const unlink = input.counters.link('in', link(20, 3));
  output.addSession({ ...session('a', 'srt'), link: link(40, 1) });
  output.addSession({ ...session('b', 'srt'), link: link(80, 2) });
  const [incoming, outgoing] = ['in', 'out'].map((direction) => ({ stream: 'live', direction })) as [object, object];
  const first = await scrape();
  const value = (name: string, labels: object) => valueOf(first, `kiln_stream_srt_${name}`, { ...labels });
  t.is(value('connections', incoming), 1);
  t.is(value('rtt_seconds', incoming), 0.02);
  t.is(value('capacity_bytes_per_second', incoming), 20_000);
  t.is(value('buffer_seconds', incoming), 0.12);
  t.is(value('lost_packets_total', incoming), 3);
  t.is(value('connections', outgoing), 2);
  t.is(value('rtt_seconds', outgoing), 0.08, 'the longest');
  t.is(value('capacity_bytes_per_second', outgoing), 40_000, 'the least');
  t.is(value('packets_total', outgoing), 200);
  t.is(value('lost_packets_total', outgoing), 3);
  unlink();
  const second = await scrape();
  t.is(valueOf(second, 'kiln_stream_srt_connections', { ...incoming }), 0);
  t.is(valueOf(second, 'kiln_stream_srt_lost_packets_total', { ...incoming }), 3);
  t.is(valueOf(second, 'kiln_stream_srt_rtt_seconds', { ...incoming }), undefined);
});

test('SRT packets of streams without series of their own stay counted when those have gone', async (t) => {
  const { application, scrape } = setUp(0);
  const { input } = publish(application, 'live');
  const figures = { rttMs: 1, capacity: 0, bufferedMs: 0, counts: { ...NO_COUNTS, packets: 5 } };
  input.counters.link('in', { figures });
  input.close('gone');
  t.is(valueOf(await scrape(), 'kiln_stream_srt_packets_total', { stream: '*', direction: 'in' }), 5);
});

test('the lag grows while nothing arrives', async (t) => {
  const { application, scrape } = setUp();
  const { input, tracks } = publish(application, 'live');
  t.is(valueOf(await scrape(), 'kiln_stream_lag_seconds'), undefined);
  input.arrival.note(
    { track: tracks[0], dts: 0, pts: 0, duration: 0, key: true, data: Buffer.alloc(1) },
    Date.now() - 3000,
  );
  const lag = valueOf(await scrape(), 'kiln_stream_lag_seconds') ?? 0;
  t.true(lag >= 3, `${lag}`);
});

test('series go with the stream, and one that comes back soon was reconnected', async (t) => {
  const { application, scrape } = setUp();
  const { input } = publish(application, 'live');
  publish(application, 'other');
  input.counters.received(10);
  input.close('gone');
  t.deepEqual(
    linesOf(await scrape(), 'kiln_stream_info').map(({ labels }) => labels.stream),
    ['other'],
  );
  t.false((await scrape()).includes('stream="live"'));
  publish(application, 'live');
  t.is(valueOf(await scrape(), 'kiln_stream_reconnects_total', { stream: 'live' }), 1);
});

test('packets that a slow reader loses are counted', async (t) => {
  const { application, scrape } = setUp();
  const { input, tracks } = publish(application, 'live');
  const [video] = tracks;
  const stuck: Consumer = { packet: () => false };
  input.read(stuck, { bytes: 1000, seconds: 100 });
  for (let i = 0; i < 10; i++)
    input.write({ track: video, dts: i, pts: i, duration: 1, key: i === 0, data: Buffer.alloc(300) });
  const body = await scrape();
  // the first is taken, three are queued, the fourth is too much: all go, and what follows until a key frame
  t.is(valueOf(body, 'kiln_stream_dropped_packets_total', { stream: 'live' }), 9);
  t.is(valueOf(body, 'kiln_stream_slow_readers_total', { stream: 'live' }), 1);
});

test('metrics of lost packets and of jitter on the way in', async (t) => {
  const { application, scrape } = setUp();
  const { input, tracks } = publish(application, 'live');
  input.counters.lost(3);
  const from = Date.now();
  for (let i = 0; i < 100; i++) {
    const packet = { track: tracks[0], dts: i * 3600, pts: i * 3600, duration: 3600, key: true, data: Buffer.alloc(1) };
    input.arrival.note(packet, from + i * 40 + (i % 2) * 20);
    const heard = { ...packet, track: tracks[1], dts: i * 1920, pts: i * 1920 };
    input.arrival.note(heard, from + i * 40 - 300);
  }
  const body = await scrape();
  t.is(valueOf(body, 'kiln_stream_lost_packets_total', { stream: 'live' }), 3);
  const jitter = valueOf(body, 'kiln_stream_track_arrival_jitter_seconds', { stream: 'live', kind: 'video' }) ?? 0;
  t.true(jitter > 0.019 && jitter <= 0.02, `${jitter}`);
  t.is(valueOf(body, 'kiln_stream_av_offset_seconds', { stream: 'live' }), 0.3);
  input.close('gone');
  t.false((await scrape()).includes('arrival_jitter_seconds{'));
});

test('relays count for the stream that they are of, and have no input', async (t) => {
  const { application, registry, scrape } = setUp();
  for (const output of ['live', 'live_low']) {
    const relay = application.relay('live', output, { type: 'Ovt', kind: 'ovt' });
    relay.setTracks([videoTrack()]);
    relay.addSession(session(output, 'webrtc'));
    relay.counters.sentTo('webrtc', 7);
    application.announce(relay);
  }
  const body = await scrape();
  t.is(valueOf(body, 'kiln_stream_info', { stream: 'live', source: 'Relay' }), 1);
  t.is(valueOf(body, 'kiln_stream_viewers', { stream: 'live', protocol: 'webrtc' }), 2);
  t.is(valueOf(body, 'kiln_stream_sent_bytes_total', { stream: 'live' }), 14);
  t.deepEqual(linesOf(body, 'kiln_stream_received_bytes_total'), []);
  t.deepEqual(linesOf(body, 'kiln_stream_track_info'), []);
  const [first] = application.relays.values();
  first?.input.close('unused');
  // the total of the stream does not fall with one of its relays
  t.is(valueOf(await scrape(), 'kiln_stream_sent_bytes_total', { stream: 'live' }), 14);
  registry.close('over');
  t.false((await scrape()).includes('stream="live"'));
});

test('streams beyond the limit are summed under one label, and their totals do not fall', async (t) => {
  const { application, scrape } = setUp(2);
  const inputs = ['a', 'b', 'c', 'd'].map((name) => publish(application, name).input);
  for (const input of inputs) input.counters.received(100);
  const others = { vhost: '*', application: '*', stream: '*' };
  t.is(valueOf(await scrape(), 'kiln_stream_received_bytes_total', others), 200);
  inputs[3]?.close('gone');
  const body = await scrape();
  t.is(valueOf(body, 'kiln_stream_received_bytes_total', others), 200);
  t.deepEqual(
    linesOf(body, 'kiln_stream_info').map(({ labels }) => labels.stream),
    ['a', 'b'],
  );
});
