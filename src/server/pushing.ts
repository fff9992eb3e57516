import type { Cluster } from '#cluster';
import type { ServerConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import { StartCaches } from '../core/start-caches.ts';
import type { Logger } from '../log/log.ts';
import { outboundGuard } from './outbound.ts';
import type { Closable } from './closable.ts';
import { SrtCalls } from '../protocols/srt/calls.ts';
import { ipCarrier } from '../pushing/ip-carriers.ts';
import { PushKind } from '../pushing/kind.ts';
import { rtmpSink } from '../pushing/rtmp-sink.ts';
import { rtspSink } from '../pushing/rtsp-sink.ts';
import { srtCarrier } from '../pushing/srt-carrier.ts';
import { keepStarts } from '../pushing/starts.ts';
import { tsSink } from '../pushing/ts-sink.ts';
import { whipSink } from '../pushing/whip-sink.ts';
import type { Tasks } from '../tasks/tasks.ts';
import type { WorkerPool } from '../webrtc/worker-pool.ts';

export interface PushingOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly cluster: Cluster;
  readonly tasks: Tasks;
  /** Media workers, once WebRTC is open; undefined where it is off. */
  readonly mediaWorkers: () => WorkerPool | undefined;
  readonly log: Logger;
}

/** Opens pushes to other servers. */
export function openPushing({ config, registry, cluster, tasks, mediaWorkers, log }: PushingOptions): Closable {
  const guard = outboundGuard(config, cluster, 'push');
  const srt = new SrtCalls(guard, log);
  const caches = new StartCaches(registry, 'pushed');
  tasks.add(
    new PushKind({
      sinks: {
        rtmp: rtmpSink(guard),
        mpegts: tsSink(ipCarrier(guard)),
        srt: tsSink(srtCarrier(srt)),
        rtsp: rtspSink(guard),
        whip: whipSink({ pool: mediaWorkers, guard }),
      },
      caches,
      log,
    }),
  );
  const undo = keepStarts(registry, tasks.definitions, caches);
  return {
    close: async () => {
      undo();
      caches.close();
      await srt.close();
    },
  };
}
