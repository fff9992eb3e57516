import { DurableFile } from './durable-file.ts';
import { ConflictError } from './errors.ts';
import { isWithin, splitKey } from './keys.ts';
import type { Change, Cluster, ConfigEntry, ConfigStore, Json } from './types.ts';

/** Version of the file's layout: `{version, revision, entries: {key: {value, revision}}}`. */
const VERSION = 1;

export interface EmbeddedOptions {
  /** File that keeps the configuration; undefined keeps it in memory only. */
  readonly file: string | undefined;
  /** Hears of a file that could not be read: it was put aside under another name. */
  readonly onDamaged: (movedTo: string, reason: string) => void;
}

/**
 * One node that shares with nobody.
 * @throws StorageError when the file cannot be locked or read
 */
export async function openEmbedded({ file, onDamaged }: EmbeddedOptions): Promise<Cluster> {
  if (file === undefined) return { config: new EmbeddedConfig(undefined, {}), close: async () => {} };
  const opened = await DurableFile.open(file, objection);
  if (opened.damaged !== undefined) onDamaged(opened.damaged.movedTo, opened.damaged.reason);
  const config = new EmbeddedConfig(opened.file, opened.content ?? {});
  const close = async (): Promise<void> => {
    await config.settled();
    await opened.file.close();
  };
  return { config, close };
}

type Content = { readonly [key: string]: Json };

/** Why a file's content cannot be used. */
function objection(content: Content): string | undefined {
  if (content.version !== VERSION) return `its version is ${JSON.stringify(content.version)}, not ${VERSION}`;
  const { entries, revision } = content;
  if (!Number.isSafeInteger(revision)) return 'it has no revision';
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

class EmbeddedConfig implements ConfigStore {
  readonly #file: DurableFile | undefined;
  /** Fields of the file that this version does not know: kept. */
  readonly #unknown: Content;
  #entries: ReadonlyMap<string, ConfigEntry>;
  #revision: number;
  /** Writes go one after the other, each on what the one before left. */
  #last: Promise<void> = Promise.resolve();

  constructor(file: DurableFile | undefined, content: Content) {
    this.#file = file;
    const { entries = {}, revision = 0, version: _, ...unknown } = content;
    this.#unknown = unknown;
    this.#entries = new Map(Object.entries(entries as unknown as Record<string, ConfigEntry>));
    this.#revision = revision as number;
  }

  entries(): ReadonlyMap<string, ConfigEntry> {
    return this.#entries;
  }

  write(changes: readonly Change[]): Promise<void> {
    const turn = this.#last.then(() => this.#apply(changes));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when no write is under way. */
  settled(): Promise<void> {
    return this.#last;
  }

  async #apply(changes: readonly Change[]): Promise<void> {
    const entries = new Map(this.#entries);
    const revision = this.#revision + 1;
    for (const { key, value, seen } of changes) {
      const present = entries.get(key)?.revision ?? 0;
      if (present !== seen) throw new ConflictError(`${key} is at revision ${present}, not ${seen}`);
      if (value !== undefined) entries.set(key, { value, revision });
      else for (const other of entries.keys()) if (isWithin(other, key)) entries.delete(other);
    }
    await this.#keep(entries, revision);
  }

  async #keep(entries: ReadonlyMap<string, ConfigEntry>, revision: number): Promise<void> {
    const content = { ...this.#unknown, version: VERSION, revision, entries: Object.fromEntries(entries) };
    await this.#file?.write(content as unknown as Content);
    this.#entries = entries;
    this.#revision = revision;
  }
}
