import type { Application } from '../core/application.ts';
import type { GopCache } from '../core/gop-cache.ts';
import type { Registry } from '../core/registry.ts';
import { StartCaches } from '../core/start-caches.ts';
import type { OutputStream } from '../core/stream.ts';
import type { TaskName } from '../tasks/definition.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import { RECORD } from './kind.ts';
import { readRecordSpec } from './spec.ts';

/** Recordings that may begin with the first picture of a stream, by their ids. */
interface Waiting {
  /** Those that were asked for before it. */
  readonly asked: Set<string>;
  /** Of those that the configuration asks for, which are defined when it is there: those that have begun. */
  readonly begun: Set<string>;
}

/** Keeps the beginning of streams that recordings wait for: the claim of a task takes longer than a first frame to come. */
export class RecordStarts {
  readonly #definitions: TaskDefinitions;
  readonly #registry: Registry;
  readonly #caches: StartCaches;
  readonly #waiting = new WeakMap<OutputStream, Waiting>();
  readonly #onOutput = (output: OutputStream, application: Application): void => this.#keep(output, application);

  constructor(registry: Registry, definitions: TaskDefinitions) {
    this.#registry = registry;
    this.#definitions = definitions;
    this.#caches = new StartCaches(registry, 'recorded', () => false, Infinity);
    registry.on('output', this.#onOutput);
  }

  /**
   * What a stream has brought before a recording begins that was asked for before the stream: everything, or, where that
   * is too much, what there is from its newest key frame on. Given once: a recording that begins anew goes on with what comes.
   */
  take(task: TaskName, output: OutputStream): GopCache | undefined {
    const waiting = this.#waiting.get(output);
    if (waiting === undefined) return undefined;
    const { asked, begun } = waiting;
    const isConfigured = this.#definitions.get(task)?.origin !== undefined;
    if (isConfigured ? begun.has(task.id) : !asked.delete(task.id)) return undefined;
    if (isConfigured) begun.add(task.id);
    return this.#caches.of(output);
  }

  /** Idempotent. */
  close(): void {
    this.#registry.off('output', this.#onOutput);
    this.#caches.close();
  }

  #keep(output: OutputStream, application: Application): void {
    const asked = this.#definitions
      .in(RECORD, application)
      .filter((name) => this.#streamOf(name) === output.name)
      .map(({ id }) => id);
    if (asked.length === 0 && application.config.publishers.file?.streamMap?.enable !== true) return;
    this.#waiting.set(output, { asked: new Set(asked), begun: new Set() });
    this.#caches.hold(output)();
  }

  #streamOf(name: TaskName): string | undefined {
    const definition = this.#definitions.get(name);
    return definition && readRecordSpec(definition.spec)?.stream.name;
  }
}
