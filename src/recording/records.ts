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

/** Unused: a task that follows a stream waits for it for ever. */
const NO_LIMIT_MS = 0;

/** A recording task of the cluster. */
export interface RecordTask {
  readonly name: TaskName;
  readonly spec: RecordSpec;
  /** Its state; undefined while no node runs it. */
  readonly report: RecordReport | undefined;
  /** The configuration asks for it. */
  readonly isConfigured: boolean;
}

export interface RecordsOptions {
  readonly tasks: ClusterTasks;
  /** As `recordPaths` takes it. */
  readonly folder: string;
}

/** The recordings of the whole cluster. */
export class Records {
  readonly #options: RecordsOptions;

  constructor(options: RecordsOptions) {
    this.#options = options;
  }

  /**
   * Defines a recording. It begins where its stream is, at the next key frame, or, if there is none yet, with its first picture.
   * @throws publisherNotFound, recordExists, taskInvalid for a path outside the root, clusterUnavailable, changeUnknown,
   * storageFailed
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

  /** All of an application, or the one of that id, in order of their ids. @throws publisherNotFound */
  async list(application: Application, id?: string): Promise<RecordTask[]> {
    checkPublisher(application);
    const rows = await this.#options.tasks.list(RECORD, application);
    return rows.flatMap((row) => (id === undefined || row.name.id === id ? (taskOf(row) ?? []) : []));
  }

  /**
   * Stops a recording, wherever it runs, and waits for the end of its file, a few seconds at most.
   * @returns how it was, with the places of the file that it has finished
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

  /** Nothing is made: folders come with the first file. */
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
      // what the disk says here is not what it says where the stream will be
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

/** undefined for one of another version. */
function taskOf({ name, definition, report }: TaskRow): RecordTask | undefined {
  const spec = readRecordSpec(definition.spec);
  if (spec === undefined) return undefined;
  const { failed } = readRecordProgress(definition.progress?.value);
  const isConfigured = definition.origin !== undefined;
  return { name, spec, report: readRecordReport(report) ?? readRecordReport(failed), isConfigured };
}
