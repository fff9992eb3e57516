import { hasRoom } from '#cluster';
import type { ServerConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { outboundGuard } from './outbound.ts';
import { OriginMaps } from '../origin-map/origin-maps.ts';
import type { StreamNames } from '../directory/stream-names.ts';
import { Demand } from '../providers/pull/demand.ts';
import { httpSource } from '../providers/http-pull/source.ts';
import { PullKind } from '../providers/pull/kind.ts';
import { ovtSource } from '../providers/pull/ovt-source.ts';
import { PulledStreams } from '../providers/pull/pulled-streams.ts';
import { bySchemes } from '../providers/pull/schemes.ts';
import { rtmpSource } from '../providers/rtmp-pull/source.ts';
import { rtspSource } from '../providers/rtsp-pull/source.ts';
import { srtSource } from '../providers/srt-pull/source.ts';
import { udpSource } from '../providers/udp-pull/source.ts';
import { whepSource } from '../providers/whep-pull/source.ts';
import { SrtCalls } from '../protocols/srt/calls.ts';
import type { WorkerPool } from '../webrtc/worker-pool.ts';
import type { ClusterServices } from './cluster.ts';
import type { TaskServices } from './tasks.ts';

export interface PullingOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly work: TaskServices;
  readonly names: StreamNames;
  /** Media workers, once WebRTC is open; undefined where it is off. */
  readonly mediaWorkers: () => WorkerPool | undefined;
  readonly log: Logger;
}

/** Opens all pulls: configured ones, on request and on demand. */
export function openPulling({ config, registry, nodes, work, names, mediaWorkers, log }: PullingOptions) {
  const { cluster, directory, changes } = nodes;
  const { tasks, clusterTasks } = work;
  const guard = outboundGuard(config, cluster, 'pull');
  const rtsp = rtspSource(guard);
  const rtmp = rtmpSource(guard);
  const http = httpSource(guard);
  const whep = whepSource({ pool: mediaWorkers, guard });
  const calls = new SrtCalls(guard, log);
  const open = bySchemes({
    ovt: ovtSource(guard),
    rtsp,
    rtspc: rtsp,
    rtmp,
    rtmps: rtmp,
    srt: srtSource(calls),
    http,
    https: http,
    whep,
    wheps: whep,
    udp: udpSource(guard),
  });
  const kind = new PullKind({ names, changes, open, log });
  tasks.add(kind);
  const pulls = new PulledStreams({ directory, definitions: tasks.definitions, tasks: clusterTasks, log });
  const ovtPort = config.bind.publishers.ovt?.port;
  const maps = new OriginMaps({ registry, ovtPort, isFromStore: (input) => kind.isFromStore(input), log });
  const isCrowded = (): boolean => {
    const nodes = cluster.nodes();
    return nodes.find(({ id }) => id === cluster.self.id)?.full === true && nodes.some(hasRoom);
  };
  const demand = new Demand({ registry, isCrowded, directory, changes, pulls, maps, log });
  return { pulls, maps, demand, calls };
}
