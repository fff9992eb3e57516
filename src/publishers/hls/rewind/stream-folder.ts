import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { mkdir, readdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../../lib/files/paths.ts';
import { unless } from '../../../lib/files/unless.ts';
import { nameHash } from '../answer/names.ts';
import { appended, FILE_MODE } from './append-files.ts';
import { parsed } from './journal.ts';
import { FOLDER_MODE, removeEmpty, RunFiles } from './run-files.ts';

/** A line for each state, the newest last. */
const STATE = 'state.journal';
const MAX_STATE_BYTES = 64 * 1024;
/** Longest name as it is: encoded ones may be longer than file systems allow. */
const MAX_NAME = 120;
const RUN = /^[A-Za-z0-9]{1,16}$/;

/** Names of a stream of one kind of HLS. */
export interface StreamNames {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
  readonly kind: string;
}

/** Folder of one stream: a folder for each of its runs, and the state from which the next publisher continues the last one. */
export class StreamFolder {
  readonly #path: string;
  /** Size of the states that were written so far; the first one replaces the file. */
  #stateBytes = Infinity;

  /** @param root absolute: TempStoragePath */
  constructor(root: string, { vhost, app, stream, kind }: StreamNames) {
    this.#path = join(root, ...[vhost, app, stream, kind].map(folderName));
  }

  run(key: string): RunFiles {
    return new RunFiles(join(this.#path, key));
  }

  /** Saved state; undefined where there is none, or a damaged one. @throws errors of the system; Error for what is no small file */
  readState(): unknown {
    const path = join(this.#path, STATE);
    try {
      const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const facts = fstatSync(file);
        if (!facts.isFile() || facts.size > MAX_STATE_BYTES) throw new Error(`no file of this server: ${path}`);
        return lastOf(readFileSync(file, 'utf8'));
      } finally {
        closeSync(file);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** @throws errors of the system */
  async writeState(state: object): Promise<void> {
    const path = join(this.#path, STATE);
    const line = `${JSON.stringify(state)}\n`;
    const length = Buffer.byteLength(line);
    const bytes = this.#stateBytes + length;
    // after a failure the last line may be cut off
    this.#stateBytes = Infinity;
    if (bytes <= MAX_STATE_BYTES) await appended.append(path, line);
    else {
      await appended.close(path);
      await mkdir(this.#path, { recursive: true, mode: FOLDER_MODE });
      await replaceFile(path, (temporary) => writeFile(temporary, line, { flag: 'wx', mode: FILE_MODE }));
    }
    this.#stateBytes = bytes <= MAX_STATE_BYTES ? bytes : length;
  }

  /** Closes the file of the states. Idempotent. Never rejects. */
  async close(): Promise<void> {
    await appended.close(join(this.#path, STATE));
  }
}

/**
 * Removes the runs of all streams of an application that did not change for a time, and then the folders that are empty.
 * @param root as of `StreamFolder`
 * @param openRun finds the run of a stream that is packaged here, by the name of its folder: that one stays
 * @throws errors of the system
 */
export async function sweepRuns(
  root: string,
  { vhost, app, kind }: Omit<StreamNames, 'stream'>,
  olderThanMs: number,
  openRun: (folder: string) => string | undefined,
): Promise<void> {
  const application = join(root, folderName(vhost), folderName(app));
  for (const stream of await foldersIn(application)) {
    const open = openRun(stream);
    const folder = join(application, stream, folderName(kind));
    for (const key of await foldersIn(folder)) {
      const run = new RunFiles(join(folder, key));
      const changedAt = RUN.test(key) && key !== open ? await run.changedAt() : undefined;
      if (changedAt !== undefined && Date.now() - changedAt > olderThanMs) await run.removeAll();
    }
    if (open !== undefined || (await foldersIn(folder)).length > 0) continue;
    await unlink(join(folder, STATE)).catch(unless('ENOENT'));
    await removeEmpty(folder);
    await removeEmpty(join(application, stream));
  }
}

/** Value of the last whole line; undefined where there is none. */
function lastOf(text: string): unknown {
  for (const line of text.split('\n').reverse()) {
    const value = parsed(line);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Names of folders in a folder, links left out; none if it does not exist. */
async function foldersIn(folder: string): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(unless('ENOENT'))) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Name of a folder for any name that a stream can have, without those that mean another folder. */
export function folderName(name: string): string {
  const encoded = encodeURIComponent(name).replace(/^\.+$/, (dots) => '%2E'.repeat(dots.length));
  return encoded.length <= MAX_NAME ? encoded : `${encoded.slice(0, MAX_NAME).replace(/%.?$/, '')}-${nameHash(name)}`;
}
