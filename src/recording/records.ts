import type { Application } from '../core/application.ts';
import { kilnError } from '../errors.ts';
import type { ClusterTasks, TaskRow } from '../tasks/cluster-tasks.ts';
import type { TaskName } from '../tasks/definition.ts';
import { asJson } from '../lib/as-json.ts';
import { TaskExistsError } from '../tasks/tasks.ts';
import { checkedParts } from './check-paths.ts';
import { RECORD } from './kind.ts';
import { PathError, placeBelow } from '../lib/files/paths.ts';
import { recordPaths } from './settings.ts';
import { readRecordProgress, readRecordReport, readRecordSpec, type RecordReport, type RecordSpec } from './spec.ts';

/** Unused: a task that follows a stream waits for it without a limit. */
const NO_LIMIT_MS = 0;

export interface RecordTask {
  readonly name: TaskName;
  readonly spec: RecordSpec;
  /** State of the task; undefined while no node runs it. */
  readonly report: RecordReport | undefined;
  /** Whether the configuration asks for it. */
  readonly isConfigured: boolean;
}

export interface RecordsOptions {
  readonly tasks: ClusterTasks;
  /** As in `recordPaths`. */
  readonly folder: string;
}

/** Recordings of the whole cluster. */
export class Records {
  readonly #options: RecordsOptions;

  constructor(options: RecordsOptions) {
    this.#options = options;
  }

  /**
   * Defines a recording. It begins where its stream is, at the next key frame, or, if there is no stream yet, with
   * its first frame.
   * @throws publisherNotFound, recordExists, taskInvalid for a path outside the root, clusterUnavailable,
   * changeUnknown, storageFailed
   */
  async create(application: Application, id: string, spec: RecordSpec): Promise<RecordTask> {
    await this.#checkPaths(application, id, spec);
    const name = taskName(application, id);
    try {
      await this.#options.tasks.create(name, asJson(spec), { persistent: true, withinMs: NO_LIMIT_MS });
    } catch (error) {
      if (error instanceof TaskExistsError) throw kilnError('recordExists');
      throw error;
    }
    return (await this.list(application, id))[0] ?? { name, spec, report: undefined, isConfigured: false };
  }

  /** Recordings of an application, or the one of that id, sorted by id. @throws publisherNotFound */
  async list(application: Application, id?: string): Promise<RecordTask[]> {
    checkPublisher(application);
    const rows = await this.#options.tasks.list(RECORD, application);
    return rows.flatMap((row) => (id === undefined || row.name.id === id ? (taskOf(row) ?? []) : []));
  }

  /**
   * Stops a recording on any node, and waits a few seconds at most for its file to be complete.
   * @returns its last state, with the paths of the file that it finished
   * @throws publisherNotFound, recordNotFound, clusterUnavailable, changeUnknown, storageFailed
   */
  async stop(application: Application, id: string): Promise<RecordTask> {
    const [task] = await this.list(application, id);
    const ended = await this.#options.tasks.end(taskName(application, id));
    if (task === undefined || ended === undefined) throw kilnError('recordNotFound', id);
    const { outputFilePath, outputInfoPath } = readRecordReport(ended.report) ?? {};
    if (task.report === undefined || outputFilePath === undefined || outputInfoPath === undefined) return task;
    return { ...task, report: { ...task.report, outputFilePath, outputInfoPath } };
  }

  /** Checks paths without creating folders, which come with the first file. */
  async #checkPaths(application: Application, id: string, spec: RecordSpec): Promise<void> {
    checkPublisher(application);
    const paths = recordPaths(application.config, spec, this.#options.folder);
    if (paths === undefined) return;
    const stream = spec.stream.name;
    const names = { id, vhost: application.vhost.name, app: application.name, stream, source: stream };
    const { file, info } = checkedParts(paths, names, application.config.publishers.file?.record?.upload?.prefix);
    try {
      await placeBelow(paths.root, file, false);
      await placeBelow(paths.root, info, false);
    } catch (error) {
      if (error instanceof PathError) throw kilnError('taskInvalid', error.message);
      // this disk may differ from that of the node that will have the stream
    }
  }
}

function taskName({ vhost, name: app }: Application, id: string): TaskName {
  return { kind: RECORD, vhost: vhost.name, app, id };
}

/** @throws publisherNotFound */
function checkPublisher({ vhost, name, config }: Application): void {
  if (config.publishers.file === undefined) throw kilnError('publisherNotFound', vhost.name, name);
}

/** undefined for a task of another version. */
function taskOf({ name, definition, report }: TaskRow): RecordTask | undefined {
  const spec = readRecordSpec(definition.spec);
  if (spec === undefined) return undefined;
  const { failed } = readRecordProgress(definition.progress?.value);
  const isConfigured = definition.origin !== undefined;
  return { name, spec, report: readRecordReport(report) ?? readRecordReport(failed), isConfigured };
}
