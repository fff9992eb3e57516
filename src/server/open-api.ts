import { resolve } from 'node:path';
import type { FastifyPluginAsync } from 'fastify';
import { CertificateStore } from '../tls/certificates.ts';
import { apiRoutes } from '../api/app.ts';
import type { CallCounts } from '../api/call-counts.ts';
import { PeerApi } from '../api/forwarded-calls.ts';
import { StreamOwners } from '../api/forwarding/stream-owner.ts';
import { answerReports, askForReport } from '../api/statistics-reports.ts';
import { StreamSessions } from '../api/stream-sessions.ts';
import type { ListenerContext } from './listeners.ts';
import { AuditLog } from '../management/audit/log.ts';
import { DynamicConfig } from '../management/dynamic-config.ts';
import type { Closable } from './closable.ts';
import type { TaskServices } from './tasks.ts';
import type { ThumbnailPublisher } from '../publishers/thumbnail/index.ts';
import type { RecentEvents } from '../log/recent-events.ts';
import type { Queues } from '../stats/queues.ts';
import { SharedStatistics } from '../stats/shared-statistics.ts';
import { portsOf, type PortPair } from './addresses.ts';
import type { CodecInventory } from '../transcode/codecs.ts';
import type { Revocations } from '../access/revocations.ts';
import type { Records } from '../recording/records.ts';
import type { Version } from '../version.ts';

export interface ApiContext extends Omit<ListenerContext, 'webrtc' | 'admission'> {
  readonly revocations: Revocations;
  readonly work: TaskServices;
  readonly codecs: CodecInventory;
  readonly records: Records;
  readonly queues: Queues;
  /** undefined where thumbnails are off. */
  readonly thumbnails: ThumbnailPublisher | undefined;
  readonly version: Version;
  readonly apiCalls?: CallCounts | undefined;
  /** Further routes on its port for the bearer of the token. */
  readonly beside?: FastifyPluginAsync | undefined;
  readonly recentEvents: RecentEvents;
  /** Base of relative paths of certificates. */
  readonly folder: string;
}

/** Ports and routes of the management API. */
export interface ApiListener {
  readonly ports: PortPair;
  readonly routes: FastifyPluginAsync;
  readonly certificates: CertificateStore;
}

/**
 * Restores objects that the management API created, and answers API calls of other nodes.
 * @param components receives each component as soon as it runs
 * @returns undefined where the API has no port
 * @throws errors that keep a component from starting
 */
export async function openApi(context: ApiContext, components: Closable[]): Promise<ApiListener | undefined> {
  const { config, registry, certificates, codecs, records, playlists, version, folder, apiCalls, beside, log } =
    context;
  const { cluster, directory, calls, others } = context.nodes;
  const { names, standbys, pulls, channels, demand } = context.streams;
  const dynamic = new DynamicConfig({ registry, cluster, certificates, log });
  components.push(dynamic);
  await dynamic.restore();
  const { managers, bind, defaults, modules } = config;
  const { api } = bind.managers;
  const own = new CertificateStore({ folder, log });
  const { host } = managers ?? {};
  const reloadApi =
    host === undefined || api?.tlsPort === undefined ? undefined : () => own.load({ name: 'Managers', host });
  await reloadApi?.();
  const isAlone = config.cluster === undefined;
  const shared = isAlone ? undefined : new SharedStatistics({ cluster, registry, ask: askForReport(others) });
  if (shared !== undefined) {
    answerReports(calls, shared);
    components.push(shared);
  }
  const resources = {
    registry,
    version,
    cluster,
    directory,
    pulls,
    channels: channels.channels,
    guides: channels.guides,
    standbys,
    fetch: demand.fetch,
    tasks: context.work.clusterTasks,
    records,
    recordings: context.recordings,
    queues: context.queues,
    quality: context.quality,
    revocations: context.revocations,
    playlists,
    thumbnails: context.thumbnails,
    dynamic,
    events: (count: number) => context.recentEvents.newest(count),
    shared,
    addedKinds: (['flv', 'rtmp', 'rtsp'] as const).filter((kind) => bind.publishers[kind] !== undefined),
    codecs,
    certificates: { vhosts: certificates, reloadApi },
    sessions: new StreamSessions(registry, others, calls),
    hidesClients: config.privacyProtection,
  };
  const auditLog = managers?.api.auditLog;
  const audit =
    auditLog && new AuditLog({ path: resolve(folder, auditLog.path), key: auditLog.key, node: cluster.self.id, log });
  if (audit !== undefined) components.push(audit);
  if (!isAlone) components.push(await PeerApi.open({ ...resources, audit }, calls, log));
  if (managers === undefined || api === undefined) return undefined;
  const { accessToken, crossDomains = defaults.crossDomains } = managers.api;
  const owners = new StreamOwners({ registry, cluster, calls, names, directory, log });
  const routes = apiRoutes({
    ...resources,
    owners,
    log,
    audit,
    calls: apiCalls,
    beside,
    others: isAlone ? undefined : others,
    config: { accessToken, crossDomains, hostNames: managers.host.names, etag: modules.etag.enable },
  });
  return { ports: portsOf(api), routes, certificates: own };
}
