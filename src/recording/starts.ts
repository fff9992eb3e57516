import type { Application } from '../core/application.ts';
import type { GopCache } from '../core/gop-cache.ts';
import type { Registry } from '../core/registry.ts';
import { StartCaches } from '../core/start-caches.ts';
import type { OutputStream } from '../core/output-stream.ts';
import type { TaskName } from '../tasks/definition.ts';
import type { TaskDefinitions } from '../tasks/definitions.ts';
import { RECORD } from './kind.ts';
import { readRecordSpec } from './spec.ts';

/** Recordings that may begin with the first frame of a stream, by id. */
interface Waiting {
  /** Recordings requested before the stream. */
  readonly asked: Set<string>;
  /** Configured recordings that have begun, which are defined once the stream exists. */
  readonly begun: Set<string>;
}

/**
 * Caches the start of streams for which recordings wait: claiming a task takes longer than the first frame to arrive.
 */
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
   * Takes the cached packets of a stream for a recording that was requested before it: all of them, or, beyond a
   * limit, those from the newest key frame on. Given once: a recording that starts anew continues with new packets.
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
