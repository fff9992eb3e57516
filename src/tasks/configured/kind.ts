import type { Json } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { OutputStream } from '../../core/stream.ts';

/** A task that the configuration asks for, for each stream that it names. */
export interface ConfiguredEntry {
  /** Identifies it among the entries of a kind in an application, and is another one when what it says changes. */
  readonly key: string;
  /** Where it is written, for the log. */
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

/** A kind of tasks that follow streams, as far as the configuration asks for some. */
export interface ConfiguredKind {
  readonly name: string;
  /**
   * The entries of an application that are on, as they are now; asked again every few seconds, with the same array as long
   * as they are the same. What is wrong with them is in the log.
   */
  entries(application: Application): Promise<readonly ConfiguredEntry[]>;
}
