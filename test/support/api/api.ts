import Fastify, { type FastifyInstance } from 'fastify';
import type { ExecutionContext } from 'ava';
import { join } from 'node:path';
import { StandbyKind } from '../../../src/channels/standby/kind.ts';
import { Slates } from '../../../src/channels/standby/slates.ts';
import { Standbys } from '../../../src/channels/standby/standbys.ts';
import { pino } from 'pino';
import { CertificateStore } from '../../../src/tls/certificates.ts';
import { apiRoutes, type ApiOptions } from '../../../src/api/app.ts';
import { StreamOwners } from '../../../src/api/forwarding/stream-owner.ts';
import { StreamSessions } from '../../../src/api/stream-sessions.ts';
import { VirtualHost } from '../../../src/config/elements/vhost.ts';
import { readConfig } from '../../../src/config/read.ts';
import { StartCaches } from '../../../src/core/start-caches.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { VirtualHostConfig } from '../../../src/config/model.ts';
import { ChannelFiles } from '../../../src/channels/files/channel-files.ts';
import { ChannelGraph } from '../../../src/channels/channel-graph.ts';
import { Channels } from '../../../src/channels/channels.ts';
import { Guides } from '../../../src/channels/guides.ts';
import { PullError } from '../../../src/providers/pull/error.ts';
import { PullKind } from '../../../src/providers/pull/kind.ts';
import { PulledStreams } from '../../../src/providers/pull/pulled-streams.ts';
import { MediaFiles } from '../../../src/channels/scheduled/media-files.ts';
import { ClusterTasks } from '../../../src/tasks/cluster-tasks.ts';
import { PushError } from '../../../src/pushing/error.ts';
import { PushKind } from '../../../src/pushing/kind.ts';
import { openRecordings } from '../recording/finished.ts';
import { Journal } from '../../../src/recording/journal.ts';
import { RecordKind } from '../../../src/recording/kind.ts';
import { Records } from '../../../src/recording/records.ts';
import { Revocations } from '../../../src/access/revocations.ts';
import { QualityReports } from '../../../src/quality/quality-reports.ts';
import { Queues } from '../../../src/stats/queues.ts';
import { Tasks } from '../../../src/tasks/tasks.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { DynamicConfig } from '../../../src/management/dynamic-config.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import { StreamDirectory } from '../../../src/directory/stream-directory.ts';
import { StreamNames } from '../../../src/directory/stream-names.ts';
import { openAlone } from '../cluster/cluster.ts';

export const TOKEN = 'user-id:päss word';
export const VERSION = { version: '1.2.3', gitVersion: 'v1.2.3-4-gabcdef0' };

/** Adds a virtual host given as in the management API, through the configuration's own checks. */
export function createVhost(registry: Registry, json: object): void {
  const reading = readConfig(VirtualHost, json);
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  registry.createVhost(reading.config as VirtualHostConfig, true);
}

/** `default` with `app` (one profile) and `bare` (nothing given), and `second` with a template. */
export function sampleRegistry(): Registry {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [
      {
        name: 'app',
        type: 'live',
        providers: { rtmp: {} },
        publishers: { llhls: { chunkDuration: 0.5 }, webrtc: {} },
        outputProfiles: {
          outputProfile: [
            {
              name: 'bypass',
              outputStreamName: '${OriginStreamName}_out',
              encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] },
            },
          ],
        },
      },
      { name: 'bare', type: 'live' },
    ],
  });
  createVhost(registry, {
    name: 'second',
    distribution: 'example.com',
    host: { names: ['a.example.com', '*.example.org'] },
    signedPolicy: {
      policyQueryKeyName: 'policy',
      signatureQueryKeyName: 'signature',
      secretKey: 'shown',
      enables: { providers: 'rtmp' },
    },
    applications: [{ name: '*', type: 'live' }],
  });
  return registry;
}

/** What the API changes, kept in memory unless there is a file. */
export async function dynamicConfig(registry: Registry, file?: string, certificates = noCertificates()) {
  const log = pino({ level: 'silent' });
  const cluster = await openAlone(file);
  return { cluster, config: new DynamicConfig({ registry, cluster, certificates, log }) };
}

function noCertificates(): CertificateStore {
  return new CertificateStore({ folder: '/nowhere', log: pino({ level: 'silent' }) });
}

async function noSource(): Promise<never> {
  throw new PullError('there is no network here');
}

async function noSink(): Promise<never> {
  throw new PushError('there is no network here');
}

export type ApiConfig = ApiOptions['config'];

/** What the management API is made of, on a machine without ffmpeg. */
export async function apiOptions(
  config: Partial<ApiConfig> = {},
  registry = sampleRegistry(),
  certificates: ApiOptions['certificates'] = { vhosts: noCertificates() },
  folder = '/nowhere',
): Promise<ApiOptions> {
  const { cluster, config: dynamic } = await dynamicConfig(registry, undefined, certificates.vhosts);
  const directory = new StreamDirectory({ cluster, registry });
  const log = pino({ level: 'silent' });
  const revocations = new Revocations();
  revocations.follow(cluster.config);
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const changes = new StreamChanges(registry, directory);
  const names = new StreamNames({ cluster, registry, changes, log });
  const tasks = new Tasks({ cluster, registry, calls, log });
  tasks.add(new PullKind({ names, changes, open: noSource, log }));
  tasks.add(
    new PushKind({
      sinks: { rtmp: noSink, mpegts: noSink, srt: noSink, rtsp: noSink, whip: noSink },
      caches: new StartCaches(registry, 'pushed'),
      log,
    }),
  );
  tasks.add(new RecordKind({ folder, journal: new Journal({ folder, log }), start: () => undefined, log }));
  const slates = new Slates({ folder: join(folder, 'standby'), base: folder, capabilities: async () => undefined });
  const standbys = new Standbys({ registry, names, slates, tasks, isClustered: false, log });
  tasks.add(new StandbyKind({ changes, folder, stand: async () => undefined }));
  const clusterTasks = new ClusterTasks({ cluster, tasks, others, calls, log });
  return {
    registry,
    cluster,
    directory,
    dynamic,
    pulls: new PulledStreams({
      directory,
      definitions: tasks.definitions,
      tasks: clusterTasks,
      log,
    }),
    channels: new Channels({
      names,
      definitions: tasks.definitions,
      tasks: clusterTasks,
      files: new ChannelFiles({ cluster, registry, tasks, others, calls, folder, log }),
      graph: new ChannelGraph({ registry, definitions: tasks.definitions, others, calls }),
    }),
    standbys,
    guides: new Guides({ registry, tasks, others, calls, filesOf: async () => new MediaFiles('', '') }),
    fetch: () => {},
    events: () => [],
    tasks: clusterTasks,
    records: new Records({ tasks: clusterTasks, folder }),
    recordings: openRecordings(folder),
    playlists: [],
    queues: new Queues(registry),
    quality: new QualityReports(),
    revocations,
    sessions: new StreamSessions(registry, others, calls),
    owners: new StreamOwners({ registry, cluster, calls, directory, names, log }),
    log,
    config: { accessToken: TOKEN, hostNames: ['*'], etag: false, ...config },
    version: VERSION,
    certificates,
    codecs: new CodecInventory({ log, env: { KILN_FFMPEG: '/nowhere/ffmpeg' } }),
  };
}

/** The management API on an instance that does not listen. */
export async function openApi(
  t: ExecutionContext,
  config: Partial<ApiConfig> = {},
  registry = sampleRegistry(),
  more: Partial<ApiOptions> = {},
) {
  const app = Fastify();
  const options = { ...(await apiOptions(config, registry)), ...more };
  await app.register(apiRoutes(options));
  t.teardown(() => app.close());
  return { app, registry, options, call: caller(app) };
}

export function basic(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

interface Envelope {
  message: string;
  statusCode: number;
  response?: unknown;
}

type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS';

/** Calls with the token; `headers` come on top. */
export function caller(app: FastifyInstance) {
  return async (method: Method, url: string, headers: Record<string, string> = {}, payload?: string) => {
    const response = await app.inject({ method, url, headers: { authorization: basic(TOKEN), ...headers }, payload });
    const { statusCode: status, headers: answered, body: text } = response;
    return { status, headers: answered, text, body: text === '' ? undefined : response.json<Envelope>() };
  };
}
