import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ChangingFile } from '../../config/changing-file.ts';
import type { Logger } from '../../log/log.ts';

const MAX_FILES = 1000;
const MAX_BYTES = 1024 * 1024;
/** A file missing for this many scans counts as deleted: one that is being replaced may be missing for a moment. */
const MISSING_LOOKS = 3;

export type FolderChange =
  | { readonly file: string; readonly bytes: Buffer }
  /** Without bytes the file is deleted. */
  | { readonly file: string; readonly bytes: undefined };

interface KnownFile {
  readonly content: ChangingFile;
  missing: number;
  /** Reason why the last read failed. */
  failure: string | undefined;
}

/** The files with one extension in a folder, read again when they change. An unreadable file keeps its last content. */
export class ScannedFolder {
  readonly #path: string;
  readonly #extension: string;
  readonly #log: Logger;
  readonly #files = new Map<string, KnownFile>();
  #failure: string | undefined;

  constructor(path: string, extension: string, log: Logger) {
    this.#path = path;
    this.#extension = extension;
    this.#log = log;
  }

  /** Changes since the last scan, in the order of file names. */
  async look(): Promise<FolderChange[]> {
    const present = await this.#present();
    if (present === undefined) return [];
    const changes: FolderChange[] = [];
    for (const file of present) {
      const bytes = await this.#read(file);
      if (bytes !== undefined) changes.push({ file, bytes });
    }
    const names = new Set(present);
    for (const [file, known] of this.#files) {
      if (!names.has(file)) known.missing++;
      if (known.missing < MISSING_LOOKS) continue;
      this.#files.delete(file);
      changes.push({ file, bytes: undefined });
    }
    return changes;
  }

  /** Forgets a file: the next scan reports it as new, or not at all if it is missing. */
  forget(file: string): void {
    this.#files.delete(file);
  }

  /** File names; undefined when the folder cannot be read. */
  async #present(): Promise<string[] | undefined> {
    let files: string[];
    try {
      files = await readdir(this.#path);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.#fail(message, 'the folder of channel files cannot be read: trying again, and its channels remain');
      return code === 'ENOENT' ? [] : undefined;
    }
    const found = files.filter((file) => file.endsWith(this.#extension) && !file.startsWith('.')).sort();
    if (found.length <= MAX_FILES) {
      this.#failure = undefined;
      return found;
    }
    this.#fail(`more than ${MAX_FILES}`, 'the folder has too many channel files: those that came last have no effect');
    // a new file does not end a channel that plays
    const known = found.filter((file) => this.#files.has(file));
    const others = found.filter((file) => !this.#files.has(file));
    return [...known, ...others].slice(0, MAX_FILES).sort();
  }

  /** undefined when unchanged. */
  async #read(file: string): Promise<Buffer | undefined> {
    const known = this.#files.get(file) ?? this.#open(file);
    try {
      const bytes = await known.content.changed();
      known.missing = 0;
      known.failure = undefined;
      return bytes;
    } catch (error) {
      const { code, message: reason } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') known.missing++;
      else known.missing = 0;
      if (code !== 'ENOENT' && reason !== known.failure)
        this.#log.warn({ file: join(this.#path, file), reason }, 'the channel file cannot be read: trying again');
      known.failure = reason;
      return undefined;
    }
  }

  #open(file: string): KnownFile {
    const content = new ChangingFile(join(this.#path, file), MAX_BYTES);
    const known = { content, missing: 0, failure: undefined };
    this.#files.set(file, known);
    return known;
  }

  #fail(reason: string, text: string): void {
    if (reason !== this.#failure) this.#log.warn({ folder: this.#path, reason }, text);
    this.#failure = reason;
  }
}
