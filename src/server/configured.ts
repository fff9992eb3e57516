import type { Cluster } from '#cluster';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { ConfiguredTasks } from '../tasks/configured/configured-tasks.ts';
import { StreamMaps } from '../tasks/configured/stream-maps.ts';
import { PUSH } from '../pushing/kind.ts';
import { PUSH_MAP } from '../pushing/stream-map.ts';
import { RECORD } from '../recording/kind.ts';
import { recordMap } from '../recording/stream-map.ts';
import type { Tasks } from '../tasks/tasks.ts';

export interface ConfiguredOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly tasks: Tasks;
  /** Base of relative paths of stream maps. */
  readonly folder: string;
  /** Folder of recordings without a RootPath. */
  readonly recordFolder: string;
  readonly log: Logger;
}

/** Starts recordings and pushes of the configuration. */
export function openConfigured({ folder, recordFolder, log, ...options }: ConfiguredOptions): ConfiguredTasks {
  const common = { folder, env: process.env };
  const records = new StreamMaps({ ...common, format: recordMap(recordFolder), log: log.child({ module: RECORD }) });
  const pushes = new StreamMaps({ ...common, format: PUSH_MAP, log: log.child({ module: PUSH }) });
  return new ConfiguredTasks({
    ...options,
    kinds: [
      { name: RECORD, entries: ({ config }) => records.entries(config.publishers.file?.streamMap) },
      { name: PUSH, entries: ({ config }) => pushes.entries(config.publishers.push?.streamMap) },
    ],
    log,
  });
}
