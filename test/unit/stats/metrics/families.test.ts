import test from 'ava';
import { pino } from 'pino';
import { Counters, Flow } from '../../../../src/core/counters.ts';
import { Histogram } from '../../../../src/lib/histogram.ts';
import { InputStream } from '../../../../src/core/input-stream.ts';
import { FaultLog, jsonLogger, logCounts, LogCounts } from '../../../../src/log/log.ts';
import { PlaylistCounts } from '../../../../src/publishers/hls/answer/counts.ts';
import { AllStreams } from '../../../../src/stats/metrics/all-streams.ts';
import { callFamilies } from '../../../../src/stats/metrics/calls.ts';
import { clusterFamilies } from '../../../../src/stats/metrics/cluster.ts';
import { encoderFamilies } from '../../../../src/stats/metrics/encoders.ts';
import { Exposition } from '../../../../src/stats/metrics/exposition.ts';
import type { Family } from '../../../../src/stats/metrics/family.ts';
import { logFamilies } from '../../../../src/stats/metrics/log.ts';
import { mediaWorkerFamilies } from '../../../../src/stats/metrics/media-workers.ts';
import { playlistFamilies } from '../../../../src/stats/metrics/playlists.ts';
import { StoreCounts } from '../../../../src/stats/metrics/store-counts.ts';
import { workFamilies } from '../../../../src/stats/metrics/work.ts';
import { TaskCounts } from '../../../../src/tasks/counts.ts';
import { EncoderRuns } from '../../../../src/transcode/encoder-runs.ts';
import { CallCounts } from '../../../../src/api/call-counts.ts';
import { sampleRegistry } from '../../../support/api/api.ts';
import { openAlone } from '../../../support/cluster/cluster.ts';
import { documented, linesOf, valueOf } from '../../../support/api/exposition.ts';
import { videoTrack } from '../../../support/media/packets.ts';

const scrape = async (families: readonly Family[]) =>
  documented((await new Exposition(families).scrape(undefined)).body.toString());

test('a histogram takes values at their upper bound, and those above all bounds', (t) => {
  const histogram = new Histogram([1, 2]);
  for (const value of [0, 1, 1.5, 2, 2.1, Infinity]) histogram.add(value);
  t.deepEqual(histogram.counts, [2, 2, 2]);
});

test('encoders: their processes, and the media that those before them put out', async (t) => {
  const registry = sampleRegistry();
  const streams = new AllStreams(registry);
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
  input.setTracks([videoTrack()]);
  const runs = new EncoderRuns();
  const families = encoderFamilies(runs, streams);
  const labels = { vhost: 'default', application: 'app', stream: 'live' };
  const end = runs.begin({ input, pid: undefined, mediaSeconds: 5, queuedSeconds: 0 });
  end();
  runs.died++;
  t.is(valueOf(await scrape(families), 'kiln_encoder_processes', labels), undefined);
  runs.begin({ input, pid: process.pid, mediaSeconds: 2, queuedSeconds: 1.5 });
  const body = await scrape(encoderFamilies(runs, streams));
  t.is(valueOf(body, 'kiln_encoder_starts_total'), 2);
  t.is(valueOf(body, 'kiln_encoder_deaths_total'), 1);
  t.is(valueOf(body, 'kiln_encoder_processes', labels), 1);
  t.is(valueOf(body, 'kiln_encoder_media_seconds_total', labels), 7);
  t.is(valueOf(body, 'kiln_encoder_queue_seconds', labels), 1.5);
  t.true((valueOf(body, 'kiln_encoder_cpu_seconds_total', labels) ?? 0) > 0);
  t.true((valueOf(body, 'kiln_encoder_resident_memory_bytes', labels) ?? 0) > 1e6);
  t.is(runs.mediaSeconds(new InputStream('other', input.source, new Counters())), 0);
});

test('metrics of media workers', async (t) => {
  const workers = [{ index: 0, pid: process.pid, sessions: 3 }];
  const body = await scrape(mediaWorkerFamilies({ workers, died: 1 }));
  t.true((valueOf(body, 'kiln_media_worker_cpu_seconds_total', { worker: '0' }) ?? 0) > 0);
  t.is(valueOf(body, 'kiln_media_worker_sessions', { worker: '0' }), 3);
  t.is(valueOf(body, 'kiln_media_worker_deaths_total'), 1);
  const gone = await scrape(mediaWorkerFamilies({ workers: [{ index: 0, pid: 2 ** 30, sessions: 0 }], died: 0 }));
  t.deepEqual(linesOf(gone, 'kiln_media_worker_cpu_seconds_total'), []);
});

test('metrics of playlists', async (t) => {
  const counts = new PlaylistCounts();
  counts.answered('part', 200);
  counts.answered('part', 200);
  counts.answered('master', 404);
  const families = playlistFamilies([{ form: { kind: 'llhls' }, waiting: 4, feeds: 3, counts }]);
  const before = await scrape(families);
  t.is(valueOf(before, 'kiln_playlist_requests_total', { kind: 'part', status: '200' }), 2);
  t.is(valueOf(before, 'kiln_playlist_requests_total', { kind: 'master', status: '404' }), 1);
  t.is(valueOf(before, 'kiln_playlist_waiting_requests', { protocol: 'llhls' }), 4);
  t.is(valueOf(before, 'kiln_playlist_feeds', { protocol: 'llhls' }), 3);
  Object.assign(counts.past, { storedSegments: 5, storedBytes: 900, lostSegments: 2 });
  const past = await scrape(families);
  t.is(valueOf(past, 'kiln_rewind_stored_segments_total', { protocol: 'llhls' }), 5);
  t.is(valueOf(past, 'kiln_rewind_stored_bytes_total', { protocol: 'llhls' }), 900);
  t.is(valueOf(past, 'kiln_rewind_lost_segments_total', { protocol: 'llhls' }), 2);
  t.deepEqual(linesOf(past, 'kiln_drm_next_key_rotation_timestamp_seconds'), []);
  Object.assign(counts.keys, { rotations: 6, failures: 1 });
  for (const time of [90_500, 70_500]) counts.keys.next.set({}, time);
  const keys = await scrape(families);
  t.is(valueOf(keys, 'kiln_drm_key_rotations_total', { protocol: 'llhls' }), 6);
  t.is(valueOf(keys, 'kiln_drm_key_rotation_failures_total', { protocol: 'llhls' }), 1);
  t.is(valueOf(keys, 'kiln_drm_next_key_rotation_timestamp_seconds', { protocol: 'llhls' }), 70.5);
  t.deepEqual(linesOf(before, 'kiln_playlist_part_delay_seconds_count'), []);
  counts.partDelay.add(0.02);
  t.is(valueOf(await scrape(families), 'kiln_playlist_part_delay_seconds_count', { protocol: 'llhls' }), 1);
});

test('metrics of tasks and channels', async (t) => {
  const counts = new TaskCounts();
  Object.assign(counts.of('record'), { started: 3, failed: 2, takenOver: 1 });
  counts.of('push');
  const running = () => [{ name: { kind: 'record' } }, { name: { kind: 'record' } }];
  const labels = { vhost: 'default', application: 'app', channel: 'news', kind: 'scheduled' };
  const body = await scrape(workFamilies({ counts, running }, () => [{ labels, state: 'fallback' }]));
  t.is(valueOf(body, 'kiln_tasks_running', { kind: 'record' }), 2);
  t.is(valueOf(body, 'kiln_tasks_running', { kind: 'push' }), 0);
  t.is(valueOf(body, 'kiln_task_runs_total', { kind: 'record' }), 3);
  t.is(valueOf(body, 'kiln_task_failures_total', { kind: 'record' }), 2);
  t.is(valueOf(body, 'kiln_task_takeovers_total', { kind: 'record' }), 1);
  t.is(valueOf(body, 'kiln_channel_state', { channel: 'news', state: 'fallback' }), 1);
  t.is(valueOf(body, 'kiln_channel_state', { channel: 'news', state: 'playing' }), 0);
});

test('metrics of calls between nodes', async (t) => {
  const api = new CallCounts();
  api.add('GET', '/v1/version', 200, 0.002);
  api.add('GET', '/v1/version', 401, 0.2);
  const failing = { seconds: new Histogram(), failed: 2 };
  const body = await scrape(
    callFamilies({
      api,
      webhooks: { opening: failing },
      revoked: () => ({ recheck: 2 }),
      peers: new Map([['live/list', failing]]),
    }),
  );
  t.is(valueOf(body, 'kiln_api_requests_total', { route: '/v1/version', status: '401' }), 1);
  t.is(valueOf(body, 'kiln_api_request_seconds_count', { route: '/v1/version' }), 2);
  t.is(valueOf(body, 'kiln_webhook_failures_total', { kind: 'opening' }), 2);
  t.is(valueOf(body, 'kiln_peer_call_failures_total', { call: 'live/list' }), 2);
});

test('the cluster of a node that is alone', async (t) => {
  const cluster = await openAlone();
  t.teardown(() => cluster.close());
  await cluster.claim('a', null, { silence: 'stop' });
  const store = new StoreCounts();
  store.command(0.003);
  store.command(undefined);
  store.beat(true);
  store.beat(false);
  const registry = sampleRegistry();
  const body = await scrape(
    clusterFamilies({
      cluster,
      store,
      registry,
      continued: () => 2,
      heldPublishers: () => 0,
      relayFeeds: () => ({ branch: 3, relay: 1 }),
    }),
  );
  t.is(valueOf(body, 'kiln_cluster_nodes', { state: 'ready' }), 1);
  t.is(valueOf(body, 'kiln_cluster_connected'), 1);
  t.is(valueOf(body, 'kiln_cluster_claims'), 1);
  t.is(valueOf(body, 'kiln_cluster_beats_total', { result: 'missed' }), 1);
  t.is(valueOf(body, 'kiln_redis_command_seconds_count'), 1);
  t.is(valueOf(body, 'kiln_redis_command_failures_total'), 1);
  t.is(valueOf(body, 'kiln_stream_takeovers_total'), 2);
  t.is(valueOf(body, 'kiln_relay_feeds', { way: 'branch' }), 3);
});

test('metrics count streams of other nodes once, whatever they are played by, while viewers play their files', async (t) => {
  const cluster = await openAlone();
  t.teardown(() => cluster.close());
  const registry = sampleRegistry();
  const application = registry.vhost('default').application('app');
  const families = clusterFamilies({
    cluster,
    store: new StoreCounts(),
    registry,
    continued: () => 0,
    heldPublishers: () => 0,
    relayFeeds: () => ({}),
  });
  const relays = async () => valueOf(await scrape(families), 'kiln_relays', { application: 'app' });
  const ovt = { type: 'Ovt', kind: 'ovt' } as const;
  const session = (id: string, kind: 'llhls' | 'hlsv3') => ({
    id,
    kind,
    createdTime: 0,
    out: new Flow(0),
    kick: () => {},
  });
  application.relay('live', 'live', ovt);
  application.viewFiles('live', 'live', ovt).addSession(session('one', 'llhls'));
  const other = application.viewFiles('other', 'other', ovt);
  t.is(await relays(), 1);
  const leave = other.addSession(session('two', 'llhls'));
  application.viewFiles('other', 'other', ovt).addSession(session('three', 'hlsv3'));
  t.is(await relays(), 2);
  leave();
  t.is(await relays(), 2);
});

test.serial('the log is counted by level, by main event, and by module of faults', async (t) => {
  const log = jsonLogger('info', { write: () => {} });
  const before = await scrape(logFamilies());
  log.warn({ event: 'encoder.died' }, 'of a test');
  log.debug({ event: 'viewer.joined' }, 'below the level');
  log.child({ module: 'of-a-test' }).error('of a test');
  const faults = new FaultLog(log.child({ module: 'of-a-test' }));
  faults.count('a fault');
  faults.count('another fault');
  const more = async (name: string, labels: Record<string, string>) =>
    (valueOf(await scrape(logFamilies()), name, labels) ?? 0) - (valueOf(before, name, labels) ?? 0);
  t.is(await more('kiln_log_lines_total', { level: 'warn' }), 1);
  t.is(await more('kiln_log_lines_total', { level: 'error' }), 1);
  t.is(await more('kiln_events_total', { event: 'encoder.died' }), 1);
  t.is(await more('kiln_events_total', { event: 'viewer.joined' }), 0);
  t.is(await more('kiln_faults_total', { module: 'of-a-test' }), 2);
  faults.close();
  // a log of another making has no module
  new FaultLog(pino({ level: 'silent' })).count('a fault');
  t.true((logCounts.faults.get('server') ?? 0) > 0);
  t.is(valueOf(await scrape(logFamilies(new LogCounts())), 'kiln_log_lines_total', { level: 'info' }), 0);
});
