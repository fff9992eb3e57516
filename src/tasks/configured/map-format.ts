import type { TObject } from 'typebox';
import type { Application } from '../../core/application.ts';
import type { ConfiguredTask } from './kind.ts';

/** The names that the macros of an entry stand for. */
export interface EntryNames {
  readonly vhost: string;
  readonly app: string;
  /** Of the output stream. */
  readonly stream: string;
  /** Of the input stream. */
  readonly source: string;
}

/** Common to the entries of all stream maps. */
export interface MapEntry {
  readonly enable: boolean;
  readonly streamName: string;
  readonly variantNames: string;
}

/** What the stream maps of a kind of tasks are made of. */
export interface MapFormat<E extends MapEntry> {
  /** Names of the root element and of its children. */
  readonly root: string;
  readonly item: string;
  /** Of a child. */
  readonly schema: TObject;
  /**
   * The task of an entry for a stream.
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
