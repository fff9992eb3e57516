import { resolve } from 'node:path';
import { ChangingFile } from '../../config/changing-file.ts';
import type { Environment } from '../../config/macros.ts';
import type { Logger } from '../../log/log.ts';
import type { ConfiguredEntry } from './kind.ts';
import type { MapEntry, MapFormat } from './map-format.ts';
import { readMap, type MapReading } from './read-map.ts';

const MAX_BYTES = 1024 * 1024;
/** Limit of findings in one file. */
const MAX_FINDINGS = 100;
/** Shortest time between two looks at a file. */
const FRESH_MS = 1000;
/** A file that was not asked for during this time is forgotten. */
const FORGOTTEN_MS = 60_000;

export interface StreamMapsOptions<E extends MapEntry> {
  readonly format: MapFormat<E>;
  /** Folder that relative paths start from. */
  readonly folder: string;
  readonly env: Environment;
  readonly log: Logger;
}

/** The stream map files of one kind of tasks, each as it is now. */
export class StreamMaps<E extends MapEntry> {
  readonly #options: StreamMapsOptions<E>;
  readonly #files = new Map<string, MapFile<E>>();

  constructor(options: StreamMapsOptions<E>) {
    this.#options = options;
  }

  /**
   * The entries of a file that are on. A file that cannot be read, or not any longer, leaves them as they were, with a
   * warning once per change.
   * @param map as an application configures it
   */
  async entries(
    map: { readonly enable: boolean; readonly path: string } | undefined,
  ): Promise<readonly ConfiguredEntry[]> {
    if (map?.enable !== true) return [];
    const path = resolve(this.#options.folder, map.path);
    return await (this.#files.get(path) ?? this.#open(path)).entries();
  }

  #open(path: string): MapFile<E> {
    for (const [other, file] of this.#files) if (file.isForgotten) this.#files.delete(other);
    const file = new MapFile(path, this.#options);
    this.#files.set(path, file);
    return file;
  }
}

class MapFile<E extends MapEntry> {
  readonly #path: string;
  readonly #options: StreamMapsOptions<E>;
  readonly #log: Logger;
  readonly #file: ChangingFile;
  #entries: readonly ConfiguredEntry[] = [];
  #looking: Promise<void> | undefined;
  #lookedAt = -Infinity;
  #askedAt = performance.now();
  #failure: string | undefined;

  constructor(path: string, options: StreamMapsOptions<E>) {
    this.#path = path;
    this.#options = options;
    this.#log = options.log.child({ file: path });
    this.#file = new ChangingFile(path, MAX_BYTES);
  }

  get isForgotten(): boolean {
    return performance.now() - this.#askedAt > FORGOTTEN_MS;
  }

  async entries(): Promise<readonly ConfiguredEntry[]> {
    this.#askedAt = performance.now();
    if (this.#askedAt - this.#lookedAt >= FRESH_MS) {
      this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
      await this.#looking;
    }
    return this.#entries;
  }

  async #look(): Promise<void> {
    try {
      const bytes = await this.#file.changed();
      if (bytes !== undefined) this.#take(bytes);
      this.#failure = undefined;
    } catch (error) {
      this.#fail(error as NodeJS.ErrnoException);
    }
    this.#lookedAt = performance.now();
  }

  #take(bytes: Buffer): void {
    const { format, env } = this.#options;
    let reading: MapReading;
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
      reading = readMap(format, text, this.#path, env);
    } catch (error) {
      this.#log.warn(
        { reason: (error as Error).message, entries: this.#entries.length },
        'the stream map is not valid: its previous entries remain in use',
      );
      return;
    }
    const { entries, findings } = reading;
    this.#entries = entries;
    this.#log.info({ entries: entries.length }, 'the stream map was read');
    for (const finding of findings.slice(0, MAX_FINDINGS)) this.#log.warn(finding);
    if (findings.length > MAX_FINDINGS) this.#log.warn(`and ${findings.length - MAX_FINDINGS} more`);
  }

  #fail({ code, message }: NodeJS.ErrnoException): void {
    if (message === this.#failure) return;
    this.#failure = message;
    const fields = { reason: message, entries: this.#entries.length };
    if (code === 'ENOENT') this.#log.warn(fields, 'the stream map does not exist: it is read as soon as it does');
    else this.#log.warn(fields, 'the stream map cannot be read: trying again, and its previous entries remain in use');
  }
}
