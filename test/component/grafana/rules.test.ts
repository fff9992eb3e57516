import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { stringify } from 'yaml';
import { alerts, GRAFANA } from '../../support/api/grafana.ts';

/** Values of a series at every step, as promtool reads them: `a+bxn` begins at a and grows by b n times. */
type Series = Readonly<Record<string, string>>;

/** What makes an alert fire, and what must not. */
interface Example {
  readonly bad: Series;
  readonly good: Series;
}

const STEPS = 80;
const STEP_SECONDS = 15;
const END = `${(STEPS * STEP_SECONDS) / 60}m`;
const NONE = `0x${STEPS}`;
const ONE = `1x${STEPS}`;

const constant = (value: number): string => `${value}x${STEPS}`;
const perSecond = (rate: number): string => `0+${rate * STEP_SECONDS}x${STEPS}`;

/** One that stays where it is, and one that grows by so much a second. */
function counted(series: string, rate: number, harmless = 0): Example {
  return { bad: { [series]: perSecond(rate) }, good: { [series]: perSecond(harmless) } };
}

/** Durations that are all below a bound, or all above it. */
function lasting(name: string, bound: number, labels = ''): Example {
  const buckets = (below: string): Series => ({
    [`${name}_bucket{instance="a", ${labels}le="${bound}"}`]: below,
    [`${name}_bucket{instance="a", ${labels}le="${bound * 10}"}`]: perSecond(5),
    [`${name}_bucket{instance="a", ${labels}le="+Inf"}`]: perSecond(5),
  });
  return { bad: buckets(NONE), good: buckets(perSecond(5)) };
}

const STREAM = 'instance="a", vhost="default", application="app", stream="live"';

const EXAMPLES: Readonly<Record<string, Example>> = {
  KilnNodeDown: { bad: { 'up{job="kiln", instance="a"}': NONE }, good: { 'up{job="kiln", instance="a"}': ONE } },
  KilnEventLoopLate: lasting('kiln_event_loop_delay_seconds', 0.1),
  KilnProcessBusy: counted('kiln_process_cpu_seconds_total{instance="a", mode="user"}', 0.95, 0.5),
  KilnMediaWorkerBusy: counted('kiln_media_worker_cpu_seconds_total{instance="a", worker="0"}', 0.95, 0.5),
  KilnMediaWorkerDied: counted('kiln_media_worker_deaths_total{instance="a"}', 0.01),
  KilnDescriptorsRunOut: {
    bad: { 'kiln_process_open_fds{instance="a"}': constant(900), 'kiln_process_max_fds{instance="a"}': constant(1000) },
    good: { 'kiln_process_open_fds{instance="a"}': constant(90), 'kiln_process_max_fds{instance="a"}': constant(1000) },
  },
  KilnErrorsLogged: {
    bad: { 'kiln_log_lines_total{instance="a", level="error"}': perSecond(0.1) },
    good: {
      'kiln_log_lines_total{instance="a", level="error"}': perSecond(0.01),
      'kiln_log_lines_total{instance="a", level="warn"}': perSecond(1),
    },
  },
  KilnAlertsUndelivered: counted('kiln_alerts_undelivered_total{instance="a"}', 0.01),
  KilnManyFaults: counted('kiln_faults_total{instance="a", module="rtmp"}', 20, 1),
  KilnStreamStalled: {
    bad: { [`kiln_stream_lag_seconds{${STREAM}}`]: constant(6) },
    good: { [`kiln_stream_lag_seconds{${STREAM}}`]: constant(0.5) },
  },
  KilnStreamReconnects: counted(`kiln_stream_reconnects_total{${STREAM}}`, 0.01),
  KilnLongKeyFrameInterval: {
    bad: { [`kiln_stream_track_key_frame_interval_seconds{${STREAM}, track="0"}`]: constant(6) },
    good: { [`kiln_stream_track_key_frame_interval_seconds{${STREAM}, track="0"}`]: constant(2) },
  },
  KilnReadersTooSlow: counted(`kiln_stream_slow_readers_total{${STREAM}}`, 0.1, 0.01),
  KilnEncoderDied: counted(`kiln_encoder_deaths_total{${STREAM}}`, 0.01),
  KilnEncoderTooSlow: {
    bad: {
      [`kiln_encoder_media_seconds_total{${STREAM}}`]: perSecond(0.5),
      [`kiln_encoder_queue_seconds{${STREAM}}`]: constant(3),
    },
    // the source itself is slow: nothing waits
    good: {
      [`kiln_encoder_media_seconds_total{${STREAM}}`]: perSecond(0.5),
      [`kiln_encoder_queue_seconds{${STREAM}}`]: NONE,
    },
  },
  KilnPartsLate: lasting('kiln_playlist_part_delay_seconds', 1, 'protocol="llhls", '),
  KilnViewersStall: {
    bad: {
      'kiln_viewer_stalls_total{instance="a", protocol="llhls"}': perSecond(1),
      'kiln_viewers{instance="a", protocol="llhls"}': constant(10),
    },
    good: {
      'kiln_viewer_stalls_total{instance="a", protocol="llhls"}': perSecond(1),
      'kiln_viewers{instance="a", protocol="llhls"}': constant(1000),
    },
  },
  KilnSlowJoin: lasting('kiln_viewer_join_seconds', 1, 'protocol="webrtc", '),
  KilnManyRefusals: counted('kiln_refusals_total{instance="a", protocol="rtmp", reason="name"}', 2, 0.1),
  KilnWebhooksFail: counted('kiln_webhook_failures_total{instance="a", kind="admission"}', 0.1),
  KilnApiFails: {
    bad: { 'kiln_api_requests_total{instance="a", status="500"}': perSecond(1) },
    good: { 'kiln_api_requests_total{instance="a", status="404"}': perSecond(10) },
  },
  KilnStoreLost: {
    bad: { 'kiln_cluster_connected{instance="a"}': NONE },
    good: { 'kiln_cluster_connected{instance="a"}': ONE },
  },
  KilnRedisSlow: lasting('kiln_redis_command_seconds', 0.1),
  KilnBeatsMissed: {
    bad: { 'kiln_cluster_beats_total{instance="a", result="missed"}': perSecond(1) },
    good: { 'kiln_cluster_beats_total{instance="a", result="taken"}': perSecond(1) },
  },
  KilnNodeLost: {
    bad: { 'kiln_cluster_nodes{instance="a", state="lost"}': ONE },
    good: {
      'kiln_cluster_nodes{instance="a", state="lost"}': NONE,
      'kiln_cluster_nodes{instance="a", state="ready"}': constant(3),
    },
  },
  KilnDistrust: {
    bad: { 'kiln_cluster_distrusted{instance="a"}': ONE },
    good: { 'kiln_cluster_distrusted{instance="a"}': NONE },
  },
  KilnPeerCallsFail: counted('kiln_peer_call_failures_total{instance="a", call="api"}', 1),
  KilnTasksFail: counted('kiln_task_failures_total{instance="a", kind="push"}', 0.1),
  KilnRecordingLost: {
    bad: { 'kiln_events_total{instance="a", event="record.failed"}': perSecond(0.01) },
    good: { 'kiln_events_total{instance="a", event="record.finished"}': perSecond(1) },
  },
  KilnDiskSlow: {
    bad: { 'kiln_slow_disks{instance="a"}': ONE },
    good: { 'kiln_slow_disks{instance="a"}': NONE },
  },
  KilnRewindLost: counted('kiln_rewind_lost_segments_total{instance="a", protocol="llhls"}', 0.1),
  KilnRewindShort: {
    bad: { 'kiln_events_total{instance="a", event="rewind.short"}': perSecond(0.01) },
    good: { 'kiln_events_total{instance="a", event="rewind.long"}': perSecond(1) },
  },
  KilnRecordingsDeletedEarly: {
    bad: { 'kiln_events_total{instance="a", event="record.space-short"}': perSecond(0.01) },
    good: { 'kiln_events_total{instance="a", event="record.deleted"}': perSecond(1) },
  },
  KilnPlayersStarve: {
    bad: {
      [`kiln_player_starvations_total{${STREAM}}`]: perSecond(1),
      [`kiln_player_reports_total{${STREAM}}`]: perSecond(10),
    },
    good: {
      [`kiln_player_starvations_total{${STREAM}}`]: perSecond(0.1),
      [`kiln_player_reports_total{${STREAM}}`]: perSecond(10),
    },
  },
  KilnPlayersStartSlowly: lasting(
    'kiln_player_startup_seconds',
    5,
    'vhost="default", application="app", stream="live", ',
  ),
  KilnChannelOffAir: {
    bad: { 'kiln_channel_state{instance="a", state="fallback"}': ONE },
    good: { 'kiln_channel_state{instance="a", state="program"}': ONE },
  },
};

/** A test of promtool: whether an alert fires in the end. */
function rulesTest(alert: string, series: Series, fires: boolean): object {
  return {
    interval: `${STEP_SECONDS}s`,
    name: `${alert} ${fires ? 'fires' : 'stays silent'}`,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}", alertstate="firing"})`,
        eval_time: END,
        exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
      },
    ],
  };
}

test('every alert fires when it should, and no other time', async (t) => {
  t.deepEqual(
    Object.keys(EXAMPLES).sort(),
    alerts()
      .map(({ alert }) => alert)
      .sort(),
  );
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rules-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'test.yml');
  await writeFile(
    file,
    stringify({
      rule_files: [join(GRAFANA, 'prometheus/kiln.rules.yml')],
      evaluation_interval: `${STEP_SECONDS}s`,
      tests: Object.entries(EXAMPLES).flatMap(([alert, { bad, good }]) => [
        rulesTest(alert, bad, true),
        rulesTest(alert, good, false),
      ]),
    }),
  );
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  t.is(status, 0, `${stdout}${stderr}`);
});
