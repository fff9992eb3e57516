import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';
import type { ApplicationConfig, StandbyConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { StreamChanges } from '../../directory/stream-changes.ts';
import { pause } from '../../lib/pause.ts';
import type { TaskName } from '../../tasks/definition.ts';
import type { PlacedKind, Task } from '../../tasks/kind.ts';
import type { StandingStream } from './standing-stream.ts';

export const STANDBY = 'standby';

/** Pause before a name that has become free is used: the deletion of the task may be on its way. */
const SETTLES_MS = 1000;
/** Changes of names may be lost. */
const LOOK_MS = 10_000;

/** Name of the task of a stream. */
export function standbyTask({ vhost, name }: Application, id: string): TaskName {
  return { kind: STANDBY, vhost: vhost.name, app: name, id };
}

/** Definition of a standby task: settings of its slate; those that are absent are the application's. */
export const StandbySpec = Type.Object(
  {
    file: Type.Optional(Type.String({ minLength: 1, maxLength: 4096 })),
    text: Type.Optional(Type.String({ maxLength: 200 })),
    silenceTimeoutMs: Type.Optional(Type.Integer({ minimum: 0 })),
    maxDuration: Type.Optional(Type.Integer({ minimum: 0, maximum: 2_000_000 })),
  },
  { additionalProperties: false },
);
export type StandbySpec = Static<typeof StandbySpec>;

const DEFAULTS = { text: 'The stream will be back soon', silenceTimeoutMs: 800, maxDuration: 0 };

/** Settings of a stream with a standby task. undefined for a definition of another version */
export function standbyConfig(spec: Json, { standby }: Pick<ApplicationConfig, 'standby'>): StandbyConfig | undefined {
  return Value.Check(StandbySpec, spec) ? { ...DEFAULTS, ...standby, ...spec, enable: true } : undefined;
}

export interface StandbyKindOptions {
  readonly changes: StreamChanges;
  /** Base of relative paths. */
  readonly folder: string;
  /** Shows a slate under a name that is free; undefined when it is in use. */
  readonly stand: (task: Task, config: StandbyConfig) => Promise<StandingStream | undefined>;
}

/** Shows the slate of a stream, whose name is the id of the task, while no node has the stream. */
export class StandbyKind implements PlacedKind {
  readonly name = STANDBY;
  readonly #options: StandbyKindOptions;

  constructor(options: StandbyKindOptions) {
    this.#options = options;
  }

  writeFailure(): undefined {
    return undefined;
  }

  readFailure(): Error {
    return new Error('the task has failed');
  }

  /** Whether the node has the file. */
  async suits(spec: Json, application: ApplicationConfig): Promise<boolean> {
    const file = standbyConfig(spec, application)?.file;
    if (file === undefined) return true;
    return access(resolve(this.#options.folder, file), constants.R_OK).then(
      () => true,
      () => false,
    );
  }

  async run(task: Task): Promise<void> {
    const { application, name, signal } = task;
    const config = standbyConfig(task.spec, application.config);
    if (config === undefined) throw new Error('the definition cannot be read');
    task.started();
    const watch = this.#options.changes.watch(application, (input) => input === name.id);
    let isFirst = task.isNew;
    try {
      while (!signal.aborted) {
        if (!isFirst) await pause(SETTLES_MS, signal);
        isFirst = false;
        const standing = signal.aborted ? undefined : await this.#options.stand(task, config);
        if (standing === undefined) await watch.next(LOOK_MS, signal);
        else if (await ended(standing, signal)) return;
      }
    } finally {
      watch.close();
    }
  }
}

/** Waits until a stream or the run has ended. @returns whether nothing can be shown any more */
async function ended(standing: StandingStream, signal: AbortSignal): Promise<boolean> {
  const { stream } = standing;
  if (!stream.closed) {
    const over = Promise.withResolvers<void>();
    const done = (): void => over.resolve();
    stream.once('close', done);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
    await over.promise;
    stream.off('close', done);
    signal.removeEventListener('abort', done);
  }
  if (signal.aborted) standing.endStandby((signal.reason as Error).message);
  return standing.isOver;
}
