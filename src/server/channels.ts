import type { Application } from '../core/application.ts';
import type { FindOutput } from '../core/find-output.ts';
import type { Registry } from '../core/registry.ts';
import { StartCaches } from '../core/start-caches.ts';
import { findFfmpeg } from '../ffmpeg.ts';
import type { Logger } from '../log/log.ts';
import type { StreamNames } from '../directory/stream-names.ts';
import { ChannelFiles } from '../channels/files/channel-files.ts';
import { ChannelGraph } from '../channels/channel-graph.ts';
import { Channels } from '../channels/channels.ts';
import { Guides } from '../channels/guides.ts';
import { ScheduleAlerts } from '../channels/schedule-alerts.ts';
import { MultiplexKind } from '../channels/multiplex/kind.ts';
import { LiveSources } from '../channels/sources/live-sources.ts';
import { ScheduledKind } from '../channels/scheduled/kind.ts';
import type { Closable } from './closable.ts';
import type { ClusterServices } from './cluster.ts';
import type { TaskServices } from './tasks.ts';

export interface ChannelsOptions {
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly work: TaskServices;
  readonly names: StreamNames;
  /** Finds output streams that are not on this node. */
  readonly find: FindOutput;
  /** Base of relative paths. */
  readonly folder: string;
  readonly log: Logger;
}

export interface ChannelServices extends Closable {
  readonly channels: Channels;
  readonly guides: Guides;
  /** Starts of other streams that channels begin with. To be closed after the channels. */
  readonly caches: StartCaches;
  readonly start: () => void;
}

/** Opens scheduled and multiplex channels: their runs on this node, and the API of those of the whole cluster. */
export function openChannels({ registry, nodes, work, names, find, folder, log }: ChannelsOptions): ChannelServices {
  const { cluster, changes, others, calls } = nodes;
  const { tasks, clusterTasks } = work;
  const { definitions } = tasks;
  const graph = new ChannelGraph({ registry, definitions, others, calls });
  const caches = new StartCaches(registry, 'channels');
  const sources = new LiveSources({ registry, find, changes, caches, graph });
  let found: Promise<string> | undefined;
  const ffmpeg = (): Promise<string> => {
    found ??= findFfmpeg().then(({ path }) => path);
    // ffmpeg may be installed until the next attempt
    found.catch(() => (found = undefined));
    return found;
  };
  const scheduled = new ScheduledKind({ names, changes, sources, ffmpeg, folder, log });
  tasks.add(scheduled);
  const filesOf = (application: Application) => scheduled.filesOf(application);
  const guides = new Guides({ registry, tasks, others, calls, filesOf });
  const alerts = new ScheduleAlerts({ registry, tasks, guides, log: log.child({ module: 'channels' }) });
  const files = new ChannelFiles({ cluster, registry, tasks, others, calls, folder, log });
  const channels = new Channels({ names, definitions, tasks: clusterTasks, files, graph });
  tasks.add(new MultiplexKind({ names, changes, sources, log }));
  return {
    channels,
    guides,
    start: () => {
      files.start();
      alerts.start();
    },
    close: () => {
      alerts.close();
      files.close();
    },
    caches,
  };
}
