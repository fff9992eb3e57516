import type { ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import type { Cluster, Json } from '#cluster';
import { apiRoutes } from '../../../src/api/app.ts';
import { Registry } from '../../../src/core/registry.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import { StreamDirectory } from '../../../src/directory/stream-directory.ts';
import { StreamNames } from '../../../src/directory/stream-names.ts';
import { ChannelFiles } from '../../../src/channels/files/channel-files.ts';
import { ChannelGraph } from '../../../src/channels/channel-graph.ts';
import { channelNames } from '../../../src/channels/channel-name.ts';
import { Channels } from '../../../src/channels/channels.ts';
import { Guides } from '../../../src/channels/guides.ts';
import { MediaFiles } from '../../../src/channels/scheduled/media-files.ts';
import { ClusterTasks } from '../../../src/tasks/cluster-tasks.ts';
import type { PlacedKind, Task } from '../../../src/tasks/kind.ts';
import { Tasks } from '../../../src/tasks/tasks.ts';
import { apiOptions, caller, createVhost } from '../api/api.ts';

/** Channels that play nothing, and tell what the test wants them to. */
export class SilentChannels implements PlacedKind {
  readonly name: string;
  readonly makesStream = true;
  readonly running = new Map<string, Task>();
  /** Definitions that its runs heard of. */
  readonly heard: Json[] = [];
  report: Json = null;

  constructor(name: SilentChannels['name']) {
    this.name = name;
  }

  writeFailure(): undefined {}

  readFailure(): Error {
    return new Error('elsewhere');
  }

  async run(task: Task): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    task.signal.addEventListener('abort', () => resolve(), { once: true });
    task.show(() => this.report);
    task.changed((spec) => this.heard.push(spec));
    this.running.set(task.name.id, task);
    task.started();
    await over;
    this.running.delete(task.name.id);
  }
}

const PROFILE = {
  name: 'copy',
  outputStreamName: '${OriginStreamName}_copy',
  encodes: { videos: [{ name: 'v', bypass: true }] },
};

/** `default` with `app`, which has channels of both kinds and a profile, and `bare`, which has neither. */
export function channelRegistry(): Registry {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [
      {
        name: 'app',
        type: 'live',
        providers: { schedule: {}, multiplex: {} },
        outputProfiles: { outputProfile: [PROFILE] },
      },
      {
        name: 'files',
        type: 'live',
        providers: { schedule: { scheduleFilesDir: 'sch' }, multiplex: { muxFilesDir: 'mux' } },
      },
      { name: 'other', type: 'live', providers: { schedule: {}, multiplex: {} } },
      { name: 'bare', type: 'live' },
    ],
  });
  return registry;
}

/** Channels of a node, which play nothing. */
export function channelNode(cluster: Cluster, folder = '/nowhere', registry = channelRegistry()) {
  const log = pino({ level: 'silent' });
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const tasks = new Tasks({ cluster, registry, calls, log });
  const [scheduled, multiplex] = [new SilentChannels('scheduled'), new SilentChannels('multiplex')];
  for (const kind of [scheduled, multiplex]) tasks.add(kind);
  const { definitions } = tasks;
  const directory = new StreamDirectory({ cluster, registry });
  const changes = new StreamChanges(registry, directory);
  const names = new StreamNames({ cluster, registry, changes, reserved: channelNames(definitions), log });
  tasks.start();
  const clusterTasks = new ClusterTasks({ cluster, tasks, others, calls, log });
  const files = new ChannelFiles({ cluster, registry, tasks, others, calls, folder, log });
  const graph = new ChannelGraph({ registry, definitions, others, calls });
  const channels = new Channels({ names, definitions, tasks: clusterTasks, files, graph });
  const close = async (): Promise<void> => {
    await tasks.close();
    files.close();
    for (const part of [names, changes, directory]) part.close();
  };
  return { registry, calls, others, names, tasks, clusterTasks, files, graph, channels, scheduled, multiplex, close };
}

/** The management API of a node that runs channels. */
export async function openChannelApi(t: ExecutionContext, folder?: string, mediaRoot = '') {
  const registry = channelRegistry();
  const plain = await apiOptions({}, registry);
  const { calls, others, tasks, clusterTasks, channels, close, ...node } = channelNode(plain.cluster, folder, registry);
  const media = new MediaFiles(mediaRoot, 'ffmpeg');
  const guides = new Guides({ registry, tasks, others, calls, filesOf: async () => media });
  // on a busy machine its routes take long to be made
  const app = Fastify({ pluginTimeout: 0 });
  await app.register(apiRoutes({ ...plain, tasks: clusterTasks, channels, guides }));
  t.teardown(async () => {
    await app.close();
    await close();
  });
  const raw = caller(app);
  const call = (method: Parameters<typeof raw>[0], path: string, body?: unknown) =>
    raw(method, `/v1/vhosts/default/apps/${path}`, {}, body === undefined ? undefined : JSON.stringify(body));
  return { ...node, call, raw, tasks, guides };
}
