import { join } from 'node:path';
import { channelNames } from '../channels/channel-name.ts';
import { Slates } from '../channels/standby/slates.ts';
import { StandbyKind } from '../channels/standby/kind.ts';
import { Standbys } from '../channels/standby/standbys.ts';
import type { ServerConfig } from '../config/model.ts';
import type { FindOutput } from '../core/find-output.ts';
import type { Registry } from '../core/registry.ts';
import { StreamNames } from '../directory/stream-names.ts';
import type { Logger } from '../log/log.ts';
import type { Demand } from '../providers/pull/demand.ts';
import type { PulledStreams } from '../providers/pull/pulled-streams.ts';
import { FedNodes } from '../relay/fed-nodes.ts';
import { Relays } from '../relay/relays.ts';
import { openChannels, type ChannelServices } from './channels.ts';
import type { Closable } from './closable.ts';
import type { WorkerPool } from '../webrtc/worker-pool.ts';
import type { ClusterServices } from './cluster.ts';
import { openPulling } from './pulling.ts';
import type { TaskServices } from './tasks.ts';
import type { CodecInventory } from '../transcode/codecs.ts';

/** Names of streams, and the streams that this node gets by itself: relays, pulls and channels. */
export interface StreamServices {
  readonly names: StreamNames;
  /** Names for publishers. */
  readonly standbys: Standbys;
  readonly relays: Relays;
  /** Nodes that relay streams from this one. */
  readonly fed: FedNodes;
  readonly pulls: PulledStreams;
  readonly demand: Demand;
  readonly channels: ChannelServices;
  /** Finds output streams that are not on this node. */
  readonly find: FindOutput;
}

export interface StreamServicesOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly work: TaskServices;
  readonly inventory: CodecInventory;
  /** Media workers, once WebRTC is open; undefined where it is off. */
  readonly mediaWorkers: () => WorkerPool | undefined;
  /** Base of relative paths. */
  readonly folder: string;
  /** Folder of what this node keeps. */
  readonly stateFolder: string;
  readonly log: Logger;
}

/** @param components receives those to close, after the tasks */
export function openStreams(options: StreamServicesOptions, components: Closable[]): StreamServices {
  const { registry, nodes, work, inventory, folder, stateFolder, log } = options;
  const { cluster, directory, changes, tree } = nodes;
  const reserved = channelNames(work.tasks.definitions);
  const names = new StreamNames({ cluster, registry, changes, reserved, log });
  const capabilities = async () => (await inventory.offer())?.capabilities;
  const slates = new Slates({ folder: join(stateFolder, 'standby'), base: folder, capabilities });
  const standbys = new Standbys({
    ...{ registry, names, slates, tasks: work.tasks, isClustered: options.config.cluster !== undefined },
    log: log.child({ module: 'standby' }),
  });
  work.tasks.add(new StandbyKind({ changes, folder, stand: (...wanted) => standbys.stand(...wanted) }));
  const relays = new Relays({ cluster, tree, directory, changes, log });
  const { pulls, maps, demand, calls } = openPulling({ ...options, names });
  registry.demand = demand.application;
  const find: FindOutput = async (application, name, query) => {
    const relay = await relays.find(application, name);
    if (relay !== undefined || !(await demand.bring(application, name, query))) return relay;
    // of nodes asked at the same time one pulls, and the others relay its stream
    return application.outputs.get(name) ?? relays.find(application, name);
  };
  const channels = openChannels({ ...options, names, find });
  components.push(names, relays, maps, channels.caches, calls);
  return { names, standbys, relays, fed: new FedNodes(), pulls, demand, channels, find };
}
