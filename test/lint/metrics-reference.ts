import { EventEmitter } from 'node:events';
import { openMetrics, type MetricsOptions } from '../../src/server/metrics.ts';

const APPLICATION = ['vhost', 'application'];
const STREAM = [...APPLICATION, 'stream'];
const TRACK = [...STREAM, 'track', 'kind'];

/** Labels by the beginning of the names that have them: the longest that fits counts. */
const LABELS: Readonly<Record<string, readonly string[]>> = {
  kiln_node_info: ['node', 'version', 'runtime'],
  kiln_node_draining: [],
  kiln_process_: [],
  kiln_process_cpu_seconds_total: ['mode'],
  kiln_process_heap_bytes: ['state'],
  kiln_event_loop_: [],
  kiln_gc_pause_seconds: ['kind'],
  kiln_media_worker_: ['worker'],
  kiln_media_worker_deaths_total: [],
  kiln_sources: [...APPLICATION, 'provider'],
  kiln_viewers: [...APPLICATION, 'protocol'],
  kiln_viewer_: ['protocol'],
  kiln_viewer_sessions_total: [...APPLICATION, 'protocol'],
  kiln_application_: APPLICATION,
  kiln_refusals_total: ['direction', 'protocol', 'reason'],
  kiln_sessions_revoked_total: ['reason'],
  kiln_playlist_: ['protocol'],
  kiln_drm_: ['protocol'],
  kiln_player_: STREAM,
  kiln_player_rendition_: [...STREAM, 'rendition'],
  kiln_player_reports_received_total: ['result'],
  kiln_slow_disks: [],
  kiln_rewind_: ['protocol'],
  kiln_playlist_requests_total: ['protocol', 'kind', 'status'],
  kiln_encoder_: STREAM,
  kiln_encoder_starts_total: [],
  kiln_encoder_deaths_total: [],
  kiln_task: ['kind'],
  kiln_channel_state: [...APPLICATION, 'channel', 'kind', 'state'],
  kiln_api_requests_total: ['method', 'route', 'status'],
  kiln_api_request_seconds: ['route'],
  kiln_webhook_: ['kind'],
  kiln_peer_call_: ['call'],
  kiln_cluster_: [],
  kiln_cluster_nodes: ['state'],
  kiln_cluster_distrusted: ['kind'],
  kiln_cluster_beats_total: ['result'],
  kiln_redis_command_: [],
  kiln_relays: APPLICATION,
  kiln_relay_feeds: ['way'],
  kiln_stream_takeovers_total: [],
  kiln_held_publishers: [],
  kiln_alerts_total: ['code'],
  kiln_alerts_undelivered_total: [],
  kiln_recordings_: APPLICATION,
  kiln_dumps_: [...APPLICATION, 'protocol'],
  kiln_log_lines_total: ['level'],
  kiln_events_total: ['event'],
  kiln_faults_total: ['module'],
  kiln_stream_: STREAM,
  kiln_stream_info: [...STREAM, 'source'],
  kiln_stream_srt_: [...STREAM, 'direction'],
  kiln_stream_viewers: [...STREAM, 'protocol'],
  kiln_stream_track_: TRACK,
  kiln_stream_track_info: [...TRACK, 'codec'],
};

const UNITS: readonly (readonly [end: string, unit: string])[] = [
  ['_bytes_per_second', 'bytes per second'],
  ['_frames_per_second', 'frames per second'],
  ['_bytes', 'bytes'],
  ['_seconds', 'seconds'],
  ['_pixels', 'pixels'],
];

/** A metric, as its page has it. */
interface Described {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** undefined where the table does not say */
  readonly labels: readonly string[] | undefined;
}

/** All metrics that a node can have, as it has them at its start. */
export function metrics(): Described[] {
  // nothing is read from what they measure before a scrape
  const nothing = {
    registry: Object.assign(new EventEmitter(), { counters: {} }),
    nodes: { cluster: {}, calls: {} },
    tasks: { counts: { kinds: new Map() } },
    streams: { names: {} },
    admission: { access: {}, webhooks: {} },
    store: {},
    encoders: {},
    mediaWorkers: { workers: [], died: 0 },
    playlists: [],
    quality: {},
    alerts: {},
    version: {},
  } as unknown as MetricsOptions;
  const opened = openMetrics(nothing);
  opened.close();
  return opened.families.map(({ name, type, help }) => ({ name, type, help, labels: labelsOf(name) }));
}

function labelsOf(name: string): readonly string[] | undefined {
  const fitting = Object.keys(LABELS).filter((beginning) => name.startsWith(beginning));
  return LABELS[fitting.sort((a, b) => b.length - a.length)[0] ?? ''];
}

function unitOf(name: string): string {
  const bare = name.replace(/_total$/, '');
  return UNITS.find(([end]) => bare.endsWith(end))?.[1] ?? '';
}

/** docs/metrics-reference.md. @throws Error the labels of a metric are not known */
export function metricsReference(): string {
  const rows = metrics()
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, help, labels }) => {
      if (labels === undefined) throw new Error(`test/lint/metrics-reference.ts does not know the labels of ${name}`);
      const shown = labels.map((label) => `\`${label}\``).join(' ');
      return `| \`${name}\` | ${type} | ${unitOf(name)} | ${shown} | ${help.replaceAll('|', '\\|')} |`;
    });
  return [
    '# Metrics reference',
    '',
    'Every metric of `/metrics`, made from what the code says of them (`npm run reference`). [Metrics](metrics.md) says how to scrape',
    'them. A counter only grows while the process runs. A histogram has its values in `_bucket` (with the label `le`), `_sum` and',
    '`_count`. Prometheus adds `instance` and `job`. A name without a unit counts things.',
    '',
    '| metric | type | unit | labels | |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n');
}
