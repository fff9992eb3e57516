import { dirname, join } from 'node:path';
import type { Logger } from './log.ts';
import type { ClusterTasks } from './tasks/cluster-tasks.ts';
import { Journal } from './tasks/record/journal.ts';
import { RecordKind } from './tasks/record/kind.ts';
import { finishLeftovers } from './tasks/record/leftovers.ts';
import { Records } from './tasks/record/records.ts';
import type { Tasks } from './tasks/tasks.ts';

export interface RecordingOptions {
  readonly tasks: Tasks;
  readonly clusterTasks: ClusterTasks;
  /** Beside it is what this node has to remember, and `records`, where recordings go without a RootPath. */
  readonly storageFile: string;
  readonly log: Logger;
}

/** Recordings of output streams. Those that were interrupted here are finished first. Call it before `tasks` start. */
export async function openRecording({ tasks, clusterTasks, storageFile, log }: RecordingOptions): Promise<Records> {
  const folder = dirname(storageFile);
  const journal = new Journal(join(folder, 'recording'));
  await finishLeftovers(journal, log.child({ module: 'record' }));
  tasks.add(new RecordKind({ folder, journal, log }));
  return new Records({ tasks: clusterTasks, folder });
}
