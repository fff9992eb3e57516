import type { TObject } from 'typebox';
import type { Application } from '../../core/application.ts';
import type { ConfiguredTask } from './kind.ts';

/** Values of the macros in an entry. */
export interface EntryNames {
  readonly vhost: string;
  readonly app: string;
  /** Name of the output stream. */
  readonly stream: string;
  /** Name of the input stream. */
  readonly source: string;
}

/** Elements that the entries of all stream maps have. */
export interface MapEntry {
  readonly enable: boolean;
  readonly streamName: string;
  readonly variantNames: string;
}

/** Format of the stream maps of one kind of tasks. */
export interface MapFormat<E extends MapEntry> {
  /** Names of the root element and of its children. */
  readonly root: string;
  readonly item: string;
  /** Schema of a child. */
  readonly schema: TObject;
  /**
   * Makes the task of an entry for a stream.
   * @param application undefined when the entry is only to be checked, with names of no meaning
   * @throws KilnError
   */
  task(entry: E, names: EntryNames, application: Application | undefined): ConfiguredTask;
}

/** The stream in the request for a task. */
export function requestedStream({ variantNames }: MapEntry, { stream }: EntryNames) {
  const names = variantNames.split(',').map((name) => name.trim());
  return { name: stream, variantNames: names.filter((name) => name !== '') };
}
