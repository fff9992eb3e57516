import { dirname, join } from 'node:path';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { isDumping } from '../publishers/hls/dump/dump.ts';
import { Buckets } from '../recording/delivery/buckets.ts';
import { Deliveries, type DeliverySettings } from '../recording/delivery/deliveries.ts';
import { StoredFiles } from '../recording/delivery/stored-files.ts';
import { DerivedFiles } from '../recording/finished/derived-files.ts';
import { idOf } from '../recording/finished/entry.ts';
import { RecordedIndex, type DumpedFolder } from '../recording/finished/recorded-index.ts';
import { Recordings } from '../recording/finished/recordings.ts';
import { Retention, type Limited, type Limits } from '../recording/finished/retention.ts';
import { Journal, type FinishedFile } from '../recording/journal.ts';
import { RecordKind } from '../recording/kind.ts';
import { finishLeftovers } from '../recording/leftovers.ts';
import { RecordStarts } from '../recording/starts.ts';
import { Records } from '../recording/records.ts';
import type { TaskServices } from './tasks.ts';

export interface RecordingOptions {
  readonly work: TaskServices;
  readonly registry: Registry;
  /** Name of this node in webhooks. */
  readonly node: string;
  /** Base path of this node's journal, and of `records`, the folder of recordings without a RootPath. */
  readonly storageFile: string;
  readonly log: Logger;
}

/**
 * Opens recordings of output streams, and the delivery of finished ones. Recordings interrupted on this node are
 * finished in the background: there may be many, and their disk may be slow.
 * Call it before `tasks` start, and `start` when all applications exist.
 */
export async function openRecording({ work, registry, node, storageFile, log }: RecordingOptions) {
  const { tasks, clusterTasks } = work;
  const folder = dirname(storageFile);
  // nodes of one machine may share the folder: none may finish a file that another one is writing
  const own = encodeURIComponent(node);
  const module = log.child({ module: 'record' });
  const index = new RecordedIndex({ folder: join(folder, `recorded-${own}`), log: module });
  const settingsOf = (name: string, app: string): DeliverySettings | undefined => {
    const vhost = registry.vhosts.get(name);
    // applications made on demand come and go
    const config = vhost?.applications.get(app)?.config ?? vhost?.template;
    return config && (config.publishers.file?.record ?? {});
  };
  const buckets = new Buckets();
  const deliveries = new Deliveries({
    folder: join(folder, `delivery-${own}`),
    node,
    settingsOf,
    buckets,
    onUpload: (job, temporary, upload, isLocal) =>
      recordings.note(job, idOf(job.startTime, temporary), upload, isLocal),
    log,
  });
  /** Files in the index whose delivery has failed: it is tried again. */
  const indexed = new Set<string>();
  const deliver = async (file: FinishedFile): Promise<void> => {
    if (!indexed.has(file.temporary)) await recordings.add(file);
    indexed.add(file.temporary);
    await deliveries.deliver(file);
    indexed.delete(file.temporary);
  };
  const journal = new Journal({ folder: join(folder, `recording-${own}`), log: module, deliver });
  const derived = new DerivedFiles(join(folder, `playback-${own}`));
  const recordings = new Recordings({ index, derived, journal, deliveries, isDumping, log: module });
  const stop = new AbortController();
  const leftovers = finishLeftovers(await journal.list(), journal, module, stop.signal);
  const starts = new RecordStarts(registry, tasks.definitions);
  tasks.add(new RecordKind({ folder, journal, start: (task, output) => starts.take(task, output), log }));
  const retention = new Retention({ index, recordings, applications: () => limited(registry), log: module });
  return {
    records: new Records({ tasks: clusterTasks, folder }),
    recordings,
    stored: new StoredFiles({ buckets, settingsOf: (vhost, app) => settingsOf(vhost, app)?.upload }),
    kept: () => retention.kept,
    onDumped: (dump: DumpedFolder) => index.addDump(dump),
    start: () => {
      deliveries.start();
      retention.start();
    },
    close: async () => {
      starts.close();
      stop.abort();
      await leftovers;
      journal.close();
      await retention.close();
      await deliveries.close();
      await buckets.close();
    },
  };
}

function* limited({ vhosts }: Registry): Generator<Limited & { readonly limits: Limits }> {
  for (const vhost of vhosts.values())
    for (const { name: app, config } of vhost.applications.values()) {
      const { file, llhls, hls } = config.publishers;
      const all = { file, llhls: llhls?.dumpRetention, hls: hls?.dumpRetention };
      for (const keeper of ['file', 'llhls', 'hls'] as const) {
        const limits = all[keeper];
        if (limits !== undefined) yield { vhost: vhost.name, app, keeper, limits };
      }
    }
}
