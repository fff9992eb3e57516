import type { ExecutionContext } from 'ava';
import Fastify from 'fastify';
import { pino } from 'pino';
import type { Json } from '#cluster';
import { apiRoutes } from '../../src/api/app.ts';
import { Registry } from '../../src/core/registry.ts';
import { OtherNodes } from '../../src/origins/other-nodes.ts';
import { PeerCalls } from '../../src/origins/peer-calls.ts';
import { ChannelFiles } from '../../src/providers/channel-files/channel-files.ts';
import { Channels } from '../../src/providers/channels/channels.ts';
import { Guides } from '../../src/providers/channels/guides.ts';
import { MediaFiles } from '../../src/providers/scheduled/media-files.ts';
import { ClusterTasks } from '../../src/tasks/cluster-tasks.ts';
import type { PlacedKind, Task } from '../../src/tasks/kind.ts';
import { Tasks } from '../../src/tasks/tasks.ts';
import { apiOptions, caller, createVhost } from './api.ts';

/** Channels that play nothing, and tell what the test wants them to. */
export class SilentChannels implements PlacedKind {
  readonly name: 'scheduled' | 'multiplex';
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

/** The management API of a node that runs channels. */
export async function openChannelApi(t: ExecutionContext, folder = '/nowhere', mediaRoot = '') {
  const registry = channelRegistry();
  const plain = await apiOptions({}, registry);
  const { cluster, directory, log } = plain;
  const calls = new PeerCalls(cluster, pino({ level: 'silent' }));
  const tasks = new Tasks({ cluster, registry, calls, log });
  const [scheduled, multiplex] = [new SilentChannels('scheduled'), new SilentChannels('multiplex')];
  for (const kind of [scheduled, multiplex]) tasks.add(kind);
  tasks.start();
  const others = new OtherNodes(cluster, calls);
  const clusterTasks = new ClusterTasks({ cluster, tasks, others, calls, log });
  const files = new ChannelFiles({ registry, tasks, others, calls, folder, log });
  const channels = new Channels({ registry, directory, definitions: tasks.definitions, tasks: clusterTasks, files });
  const media = new MediaFiles(mediaRoot, 'ffmpeg');
  const guides = new Guides({ registry, tasks, others, calls, filesOf: async () => media });
  const app = Fastify();
  await app.register(apiRoutes({ ...plain, tasks: clusterTasks, channels, guides }));
  t.teardown(async () => {
    await app.close();
    await tasks.close();
    files.close();
  });
  const raw = caller(app);
  const call = (method: Parameters<typeof raw>[0], path: string, body?: unknown) =>
    raw(method, `/v1/vhosts/default/apps/${path}`, {}, body === undefined ? undefined : JSON.stringify(body));
  return { call, raw, registry, tasks, files, guides, scheduled, multiplex };
}
