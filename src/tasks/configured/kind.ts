import type { Json } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { OutputStream } from '../../core/output-stream.ts';

/** A task that the configuration asks for, for each stream that it names. */
export interface ConfiguredEntry {
  /** Identifies the entry among those of its kind in an application; another one when the content changes. */
  readonly key: string;
  /** Place in the configuration, for the log. */
  readonly place: string;
  /**
   * The task for an output stream: an id that no other task of the kind and application has, and its spec.
   * @returns undefined for a stream that the entry does not name
   * @throws KilnError when no valid task comes of it for this stream
   */
  task(output: OutputStream, application: Application): ConfiguredTask | undefined;
}

export interface ConfiguredTask {
  readonly id: string;
  readonly spec: Json;
}

/** A kind of tasks that follow streams and that the configuration can ask for. */
export interface ConfiguredKind {
  readonly name: string;
  /**
   * Enabled entries of an application, as they are now; called every few seconds, and the array is the same as long as the
   * entries are. Faults of entries are in the log.
   */
  entries(application: Application): Promise<readonly ConfiguredEntry[]>;
}
