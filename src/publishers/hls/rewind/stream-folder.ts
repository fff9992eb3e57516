import { readFileSync } from 'node:fs';
import { mkdir, readdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../../lib/files/paths.ts';
import { unless } from '../../../lib/files/unless.ts';
import { nameHash } from '../answer/names.ts';
import { FOLDER_MODE, removeEmpty, RunFiles } from './run-files.ts';

const STATE = 'state.json';
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

  /** @param root absolute: TempStoragePath */
  constructor(root: string, { vhost, app, stream, kind }: StreamNames) {
    this.#path = join(root, ...[vhost, app, stream, kind].map(folderName));
  }

  run(key: string): RunFiles {
    return new RunFiles(join(this.#path, key));
  }

  /** Saved state; undefined where there is none, or a damaged one. @throws errors of the system */
  readState(): unknown {
    try {
      return JSON.parse(readFileSync(join(this.#path, STATE), 'utf8'));
    } catch (error) {
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** @throws errors of the system */
  async writeState(state: object): Promise<void> {
    await mkdir(this.#path, { recursive: true, mode: FOLDER_MODE });
    await replaceFile(join(this.#path, STATE), (temporary) =>
      writeFile(temporary, JSON.stringify(state), { flag: 'wx' }),
    );
  }
}

/**
 * Removes the runs of all streams of an application that did not change for a time, and then the folders that are empty.
 * @param root as of `StreamFolder`
 * @throws errors of the system
 */
export async function sweepRuns(
  root: string,
  { vhost, app, kind }: Omit<StreamNames, 'stream'>,
  olderThanMs: number,
): Promise<void> {
  const application = join(root, folderName(vhost), folderName(app));
  for (const stream of await foldersIn(application)) {
    const folder = join(application, stream, folderName(kind));
    for (const key of await foldersIn(folder)) {
      const run = new RunFiles(join(folder, key));
      const changedAt = RUN.test(key) ? await run.changedAt() : undefined;
      if (changedAt !== undefined && Date.now() - changedAt > olderThanMs) await run.removeAll();
    }
    if ((await foldersIn(folder)).length > 0) continue;
    await unlink(join(folder, STATE)).catch(unless('ENOENT'));
    await removeEmpty(folder);
    await removeEmpty(join(application, stream));
  }
}

/** Names of folders in a folder, links left out; none if it does not exist. */
async function foldersIn(folder: string): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(unless('ENOENT'))) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Name of a folder: any name that a stream can have, without those that mean another folder. */
function folderName(name: string): string {
  const encoded = encodeURIComponent(name).replace(/^\.+$/, (dots) => '%2E'.repeat(dots.length));
  return encoded.length <= MAX_NAME ? encoded : `${encoded.slice(0, MAX_NAME).replace(/%.?$/, '')}-${nameHash(name)}`;
}
