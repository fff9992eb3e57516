import { DurableFile } from './durable-file.ts';
import { splitKey } from './keys.ts';
import type { ConfigEntry, Json } from './types.ts';

/** Version of the file's layout: `{version, epoch?, revision, entries: {key: {value, revision}}}`. */
const VERSION = 1;

type Content = { readonly [key: string]: Json };

export interface ConfigState {
  readonly entries: ReadonlyMap<string, ConfigEntry>;
  readonly revision: number;
  /** Epoch of the shared store that it came from; 0 without one. */
  readonly epoch: number;
}

export interface ConfigCopyOptions {
  /** File that keeps the configuration; undefined keeps it in memory only. */
  readonly file: string | undefined;
  /** Called for a file that could not be read and was renamed. */
  readonly onDamaged: (movedTo: string, reason: string) => void;
  /** Called at most once a second for faults that are retried or tolerated. */
  readonly onFault: (error: Error) => void;
}

/** A node's durable copy of the configuration. */
export class ConfigCopy {
  readonly #file: DurableFile | undefined;
  /** Fields of the file that this version does not know; they are written back. */
  readonly #unknown: Content;
  readonly initial: ConfigState;

  private constructor(file: DurableFile | undefined, content: Content) {
    this.#file = file;
    const { entries = {}, revision = 0, epoch = 0, version: _, ...unknown } = content;
    this.#unknown = unknown;
    this.initial = {
      entries: new Map(Object.entries(entries as unknown as Record<string, ConfigEntry>)),
      revision: revision as number,
      epoch: epoch as number,
    };
  }

  /** @throws StorageError when the file cannot be locked or read */
  static async open({ file, onDamaged }: Omit<ConfigCopyOptions, 'onFault'>): Promise<ConfigCopy> {
    if (file === undefined) return new ConfigCopy(undefined, {});
    const opened = await DurableFile.open(file, objection);
    if (opened.damaged !== undefined) onDamaged(opened.damaged.movedTo, opened.damaged.reason);
    return new ConfigCopy(opened.file, opened.content ?? {});
  }

  /** @throws StorageError when it could not be written: the file is as before */
  async save({ entries, revision, epoch }: ConfigState): Promise<void> {
    const known = { version: VERSION, ...(epoch > 0 && { epoch }), revision, entries: Object.fromEntries(entries) };
    await this.#file?.write({ ...this.#unknown, ...known } as unknown as Content);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#file?.close();
  }
}

/** Why a file's content cannot be used. */
function objection(content: Content): string | undefined {
  if (content.version !== VERSION) return `its version is ${JSON.stringify(content.version)}, not ${VERSION}`;
  const { entries, revision, epoch = 0 } = content;
  if (!Number.isSafeInteger(revision)) return 'it has no revision';
  if (!Number.isSafeInteger(epoch)) return 'its epoch is malformed';
  if (!isObject(entries)) return 'it has no entries';
  const broken = Object.entries(entries).find(([key, entry]) => !isKey(key) || !isEntry(entry));
  return broken === undefined ? undefined : `its entry ${broken[0]} is malformed`;
}

function isKey(key: string): boolean {
  try {
    return splitKey(key).every((name) => name !== '');
  } catch {
    return false;
  }
}

function isEntry(entry: Json): entry is { readonly value: Json; readonly revision: number } {
  return isObject(entry) && 'value' in entry && Number.isSafeInteger(entry.revision) && (entry.revision as number) > 0;
}

function isObject(value: Json | undefined): value is Content {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
