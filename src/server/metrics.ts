import { CallCounts } from '../api/call-counts.ts';
import { diskCalls } from '../core/disk-calls.ts';
import type { Registry } from '../core/registry.ts';
import type { AdmissionServices } from './admission.ts';
import type { ClusterServices } from './cluster.ts';
import type { StreamServices } from './streams.ts';
import { MULTIPLEX, SCHEDULED } from '../channels/channel-kind.ts';
import { readMultiplexReport } from '../channels/multiplex/report.ts';
import { readScheduleReport } from '../channels/scheduled/report.ts';
import { alertFamilies, type AlertCounts } from '../stats/metrics/alerts.ts';
import { recordingFamilies, type KeptRecordings } from '../stats/metrics/recordings.ts';
import { AllStreams } from '../stats/metrics/all-streams.ts';
import { callFamilies } from '../stats/metrics/calls.ts';
import { clusterFamilies } from '../stats/metrics/cluster.ts';
import { diskFamilies } from '../stats/metrics/disks.ts';
import { encoderFamilies, type Encoders } from '../stats/metrics/encoders.ts';
import { EventLoop } from '../stats/metrics/event-loop.ts';
import { Exposition } from '../stats/metrics/exposition.ts';
import { gauge, type Family } from '../stats/metrics/family.ts';
import { linkFamilies } from '../stats/metrics/links.ts';
import { logFamilies } from '../stats/metrics/log.ts';
import { mediaWorkerFamilies, type MediaWorkers } from '../stats/metrics/media-workers.ts';
import { playlistFamilies, type Playlists } from '../stats/metrics/playlists.ts';
import { qualityFamilies, type Quality } from '../stats/metrics/quality.ts';
import { processFamilies } from '../stats/metrics/process.ts';
import type { StoreCounts } from '../stats/metrics/store-counts.ts';
import { streamFamilies } from '../stats/metrics/streams.ts';
import { trafficFamilies } from '../stats/metrics/traffic.ts';
import { workFamilies, type RunningChannel } from '../stats/metrics/work.ts';
import type { Tasks } from '../tasks/tasks.ts';
import type { Version } from '../version.ts';

export interface MetricsOptions {
  readonly registry: Registry;
  readonly nodes: Pick<ClusterServices, 'cluster' | 'calls'>;
  readonly tasks: Tasks;
  readonly streams: Pick<StreamServices, 'names' | 'fed'>;
  readonly admission: Pick<AdmissionServices, 'access' | 'webhooks'>;
  readonly store: StoreCounts;
  readonly encoders: Encoders;
  /** undefined where WebRTC is off. */
  readonly mediaWorkers: MediaWorkers | undefined;
  readonly playlists: readonly Playlists[];
  readonly quality: Quality;
  readonly recordings: () => readonly KeptRecordings[];
  readonly alerts: AlertCounts;
  readonly version: Version;
}

/** Opens the metrics of this node and starts continuous measurements. */
export function openMetrics(options: MetricsOptions) {
  const { registry, tasks, store, encoders, mediaWorkers, playlists, version } = options;
  const { cluster, calls } = options.nodes;
  const { names, fed } = options.streams;
  const { access, webhooks } = options.admission;
  const eventLoop = new EventLoop();
  const streams = new AllStreams(registry);
  const apiCalls = new CallCounts();
  const families: Family[] = [
    gauge('kiln_node_info', 'This node, and what it runs.', () => [
      { labels: { node: cluster.self.id, version: version.version, runtime: process.version }, value: 1 },
    ]),
    ...processFamilies(),
    ...eventLoop.families,
    ...(mediaWorkers === undefined ? [] : mediaWorkerFamilies(mediaWorkers)),
    ...trafficFamilies({ registry, refusals: () => access.refusals.all() }),
    ...playlistFamilies(playlists),
    ...qualityFamilies(options.quality),
    ...encoderFamilies(encoders, streams),
    ...workFamilies(tasks, () => channels(tasks)),
    ...callFamilies({
      api: apiCalls,
      webhooks: webhooks.counts,
      revoked: () => ({ recheck: webhooks.refusedAgain, revocation: access.revocations.ended }),
      peers: calls.counts,
    }),
    ...clusterFamilies({
      cluster,
      store,
      registry,
      continued: () => names.continued,
      heldPublishers: () => names.held,
      relayFeeds: () => fed.counts,
    }),
    ...recordingFamilies(options.recordings),
    ...diskFamilies(diskCalls),
    ...alertFamilies(options.alerts),
    ...logFamilies(),
    ...streamFamilies(streams),
    ...linkFamilies(streams),
  ];
  return {
    families,
    exposition: new Exposition(families),
    apiCalls,
    close: () => {
      eventLoop.close();
      streams.close();
    },
  };
}

function* channels(tasks: Tasks): Iterable<RunningChannel> {
  for (const { name, report } of tasks.running()) {
    const state = stateOf(name.kind, report);
    if (state === undefined) continue;
    yield { labels: { vhost: name.vhost, application: name.app, channel: name.id, kind: name.kind }, state };
  }
}

function stateOf(kind: string, report: unknown): RunningChannel['state'] | undefined {
  if (kind === MULTIPLEX.name) return readMultiplexReport(report)?.state === 'Playing' ? 'playing' : 'waiting';
  if (kind !== SCHEDULED.name) return undefined;
  const { item, fallback = false } = readScheduleReport(report) ?? {};
  if (item === undefined) return 'silent';
  return fallback ? 'fallback' : 'playing';
}
