import type { Cluster, ClusterState } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Logger } from '../../log/log.ts';
import { pause } from '../../lib/pause.ts';
import type { Tasks } from '../tasks.ts';
import type { ConfiguredKind } from './kind.ts';
import { Orphans } from './orphans.ts';
import { StreamTasks } from './stream-tasks.ts';

/** Pause between two looks at the entries. */
const LOOK_MS = 2000;

export interface ConfiguredTasksOptions {
  readonly cluster: Cluster;
  readonly registry: Registry;
  readonly tasks: Tasks;
  readonly kinds: readonly ConfiguredKind[];
  readonly log: Logger;
}

/**
 * Tasks that the configuration asks for: the node that has a stream defines them for it, in the cluster, as the management
 * API does, and deletes them with the stream. Entries that change take effect while streams are live.
 */
export class ConfiguredTasks {
  readonly #options: ConfiguredTasksOptions;
  readonly #log: Logger;
  /** By kind. */
  readonly #streams = new Map<ConfiguredKind, Map<OutputStream, StreamTasks>>();
  readonly #orphans: Orphans;
  readonly #closed = new AbortController();
  readonly #undo: (() => void)[] = [];

  constructor(options: ConfiguredTasksOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'tasks' });
    this.#orphans = new Orphans({ ...options, log: this.#log });
    for (const kind of options.kinds) this.#streams.set(kind, new Map());
  }

  /** Begins. Call it when the tasks have started. */
  start(): void {
    const { cluster, registry } = this.#options;
    const onOutput = (output: OutputStream, application: Application): void => this.#onOutput(output, application);
    const onState = (state: ClusterState): void => {
      if (state === 'connected') for (const tasks of this.#all()) tasks.check();
    };
    registry.on('output', onOutput);
    cluster.events.on('state', onState);
    this.#undo.push(
      () => registry.off('output', onOutput),
      () => cluster.events.off('state', onState),
    );
    for (const application of this.#applications()) {
      for (const output of application.outputs.values()) if (output.announced) this.#onOutput(output, application);
    }
    void this.#look();
  }

  /** The tasks stay defined, for the next node that has their streams. Idempotent. */
  close(): void {
    this.#closed.abort();
    for (const undo of this.#undo.splice(0)) undo();
    for (const tasks of this.#all()) tasks.close();
  }

  /** Looks at the entries again and again. What is wrong is in the log before a stream needs it. */
  async #look(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        for (const application of this.#applications()) {
          for (const kind of this.#streams.keys()) await kind.entries(application);
        }
        for (const tasks of this.#all()) tasks.look();
        await this.#orphans.sweep();
      } catch (error) {
        this.#log.error({ err: error }, 'the tasks of the configuration could not be looked at');
      }
      await pause(LOOK_MS, signal);
    }
  }

  #onOutput(output: OutputStream, application: Application): void {
    // the relay of another node's stream is none
    if (output.closed || application.outputs.get(output.name) !== output) return;
    for (const [kind, streams] of this.#streams) {
      if (streams.has(output)) continue;
      const options = { ...this.#options, kind, application, output, log: this.#log };
      streams.set(output, new StreamTasks(options, () => streams.delete(output)));
    }
  }

  *#applications(): IterableIterator<Application> {
    for (const vhost of this.#options.registry.vhosts.values()) yield* vhost.applications.values();
  }

  *#all(): IterableIterator<StreamTasks> {
    for (const streams of this.#streams.values()) yield* streams.values();
  }
}
