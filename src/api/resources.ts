import type { FastifyInstance } from 'fastify';
import type { Cluster } from '#cluster';
import { goBySchemas } from '../lib/by-schema.ts';
import type { Revocations } from '../access/revocations.ts';
import type { Registry } from '../core/registry.ts';
import { kilnError } from '../errors.ts';
import type { DynamicConfig } from '../management/dynamic-config.ts';
import { mediaType, takeMeantTypes } from '../lib/media-type.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import type { StreamDirectory } from '../directory/stream-directory.ts';
import type { Channels } from '../channels/channels.ts';
import type { Standbys } from '../channels/standby/standbys.ts';
import type { Guides } from '../channels/guides.ts';
import type { Demand } from '../providers/pull/demand.ts';
import type { PulledStreams } from '../providers/pull/pulled-streams.ts';
import type { PlaylistPublisher } from '../publishers/hls/publisher.ts';
import type { ClusterTasks } from '../tasks/cluster-tasks.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import type { Records } from '../recording/records.ts';
import type { QualityReports } from '../quality/quality-reports.ts';
import type { Queues } from '../stats/queues.ts';
import type { AddedKind } from '../stats/fields.ts';
import type { SharedStatistics } from '../stats/shared-statistics.ts';
import type { CodecInventory } from '../transcode/codecs.ts';
import type { Version } from '../version.ts';
import { AllNodes } from './forwarding/all-nodes.ts';
import { answerError } from './envelope.ts';
import { applicationRoutes } from './routes/applications.ts';
import { certificateRoutes, type ReloadableCertificates } from './routes/certificates.ts';
import { channelRoutes } from './routes/channels.ts';
import { codecRoutes } from './routes/codecs.ts';
import { hlsRoutes } from './routes/hls.ts';
import { multiplexChannelRoutes } from './routes/multiplex-channels.ts';
import { eventRoutes } from './routes/events.ts';
import { subtitleRoutes } from './routes/subtitles.ts';
import { nodeRoutes } from './routes/nodes.ts';
import { overviewRoutes, type OverviewOptions } from './routes/overview.ts';
import { outputProfileRoutes } from './routes/output-profiles.ts';
import { pushRoutes } from './routes/pushes.ts';
import { putRoutes } from './routes/put.ts';
import { qualityRoutes } from './routes/quality.ts';
import { revocationRoutes } from './routes/revocations.ts';
import { queueRoutes } from './routes/queues.ts';
import { recordRoutes } from './routes/records.ts';
import { recordingRoutes } from './routes/recordings.ts';
import { scheduledChannelRoutes } from './routes/scheduled-channels.ts';
import { sessionRoutes } from './routes/sessions.ts';
import { standbyRoutes } from './routes/standby.ts';
import { statisticsRoutes } from './routes/statistics.ts';
import { streamRoutes } from './routes/streams.ts';
import { thumbnailRoutes, type ThumbnailSource } from './routes/thumbnails.ts';
import { versionRoutes } from './routes/version.ts';
import { vhostRoutes } from './routes/vhosts.ts';
import type { StreamSessions } from './stream-sessions.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Media types of bodies that are text, not JSON. */
    readonly textTypes?: readonly string[];
  }
}

export interface ResourceOptions {
  readonly registry: Registry;
  readonly version: Version;
  readonly cluster: Cluster;
  readonly directory: StreamDirectory;
  readonly sessions: StreamSessions;
  readonly pulls: PulledStreams;
  readonly channels: Channels;
  readonly standbys: Standbys;
  readonly guides: Guides;
  /** Pulls a stream that no node has, if `Origins` or `OriginMapStore` has a source for it. */
  readonly fetch: Demand['fetch'];
  readonly tasks: ClusterTasks;
  readonly records: Records;
  readonly recordings: Recordings;
  readonly playlists: readonly PlaylistPublisher[];
  readonly thumbnails?: ThumbnailSource | undefined;
  /** Statistics of the whole cluster; undefined on a node that runs alone. */
  readonly shared?: SharedStatistics;
  /** As `StatisticsSources` has it. */
  readonly addedKinds?: readonly AddedKind[];
  readonly queues: Queues;
  /** Reports of players of this node. */
  readonly quality: QualityReports;
  readonly revocations: Revocations;
  /** Access to other nodes, for lists that every node has; undefined on a node that runs alone. */
  readonly others?: OtherNodes;
  readonly dynamic: DynamicConfig;
  readonly events: OverviewOptions['events'];
  readonly codecs: CodecInventory;
  readonly certificates: ReloadableCertificates;
  /** Whether answers leave out the addresses of clients. */
  readonly hidesClients?: boolean;
}

/** Sets how bodies are read and errors answered. */
export function speakJson(app: FastifyInstance): void {
  app.setErrorHandler(answerError);
  app.setNotFoundHandler(() => {
    throw kilnError('controllerNotFound');
  });
  goBySchemas(app);
  takeMeantTypes(app);
  takeAnyBody(app);
}

/** @param user name of the callers, where calls may be forwarded */
export async function addResources(app: FastifyInstance, options: ResourceOptions, user?: string): Promise<void> {
  const {
    registry,
    version,
    cluster,
    directory,
    sessions,
    pulls,
    channels,
    records,
    shared,
    others,
    dynamic,
    codecs,
    certificates,
  } = options;
  await app.register(vhostRoutes(registry, dynamic));
  await app.register(applicationRoutes(registry, dynamic));
  await app.register(outputProfileRoutes(registry, dynamic));
  await app.register(
    streamRoutes({ registry, directory, pulls, channels, hidesClients: options.hidesClients === true }),
  );
  await app.register(scheduledChannelRoutes(registry, channels, options.guides));
  await app.register(multiplexChannelRoutes(registry, channels));
  await app.register(recordRoutes(registry, records));
  await app.register(hlsRoutes(registry, options.playlists));
  await app.register(eventRoutes(registry));
  await app.register(subtitleRoutes(registry));
  await app.register(sessionRoutes(registry, sessions));
  await app.register(statisticsRoutes({ registry, directory, shared, added: options.addedKinds ?? [] }));
  const nodes = new AllNodes(cluster.config, others, user);
  await app.register(recordingRoutes({ registry, recordings: options.recordings, nodes, node: cluster.self.id }));
  await app.register(codecRoutes(codecs, nodes));
  await app.register(queueRoutes(options.queues, nodes, cluster.self.id));
  await app.register(qualityRoutes(options.quality, nodes, cluster.self.id));
  await app.register(revocationRoutes(options.revocations));
  await app.register(overviewRoutes({ registry, nodes, node: cluster.self.id, events: options.events }));
  await app.register(channelRoutes(registry, channels));
  await app.register(standbyRoutes(registry, options.standbys));
  await app.register(thumbnailRoutes(registry, options.thumbnails));
  await app.register(certificateRoutes(registry, certificates, others));
  await app.register(pushRoutes(registry, options.tasks, options.fetch));
  await app.register(nodeRoutes(cluster));
  await app.register(putRoutes(registry));
  await app.register(versionRoutes(version));
}

/** Reads a body as JSON whatever its type is, unless its route accepts that type as text. A missing body is accepted, too. */
function takeAnyBody(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') return done(null, undefined);
    const { textTypes = [] } = request.routeOptions.config;
    if (textTypes.includes(mediaType(request.headers['content-type'] ?? ''))) return done(null, body);
    void parse(request, body as string, done);
  });
}
