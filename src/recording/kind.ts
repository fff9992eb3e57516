import { once } from 'node:events';
import type { Json } from '#cluster';
import type { GopCache } from '../core/gop-cache.ts';
import type { OutputStream } from '../core/output-stream.ts';
import { FaultLog, type Logger } from '../log/log.ts';
import type { TaskName } from '../tasks/definition.ts';
import type { StreamKind, StreamTask } from '../tasks/kind.ts';
import { Disks, MAX_BYTES } from '../core/disks.ts';
import type { Journal } from './journal.ts';
import { Recorder } from './recorder.ts';
import { recordPaths } from './settings.ts';
import { readRecordProgress, readRecordSpec } from './spec.ts';

export const RECORD = 'record';

export interface RecordKindOptions {
  /** Base of a relative RootPath, and the folder of recordings without one. */
  readonly folder: string;
  readonly journal: Journal;
  /** Packets of a stream from before a recording that was waiting for it. */
  readonly start: (task: TaskName, output: OutputStream) => GopCache | undefined;
  readonly log: Logger;
}

/** Tasks that record output streams. */
export class RecordKind implements StreamKind {
  readonly name = RECORD;
  readonly #options: RecordKindOptions;
  readonly #disks = new Disks();

  constructor(options: RecordKindOptions) {
    this.#options = options;
  }

  follows(spec: Json): string | undefined {
    return readRecordSpec(spec)?.stream.name;
  }

  async run(task: StreamTask): Promise<void> {
    const { name, application, output, progress, signal } = task;
    const spec = readRecordSpec(task.spec);
    if (spec === undefined) throw new Error('the definition cannot be read');
    const { error, failed } = readRecordProgress(progress);
    if (error !== undefined) {
      // an error is final: it stays until the task is stopped
      task.show(() => failed as Json);
      if (!signal.aborted) await once(signal, 'abort');
      return;
    }
    const { folder, journal, start } = this.#options;
    const log = this.#options.log.child({
      module: RECORD,
      task: name.id,
      stream: `${application.internalName}/${output.name}`,
    });
    const paths = recordPaths(application.config, spec, folder);
    if (paths === undefined) {
      log.warn('the stream is not recorded: the application has no FILE publisher');
      if (!signal.aborted) await once(signal, 'abort');
      return;
    }
    const faults = new FaultLog(log);
    const disk = this.#disks.open(paths.root, output.queue('file', { bytes: MAX_BYTES / 2 }));
    try {
      const skipsStandby = !(spec.standby ?? application.config.publishers.file?.standby ?? true);
      const options = { task, spec, paths, skipsStandby, start: start(name, output), disk, journal, faults, log };
      await new Recorder(options).run();
    } finally {
      disk.close();
      faults.close();
    }
  }
}
