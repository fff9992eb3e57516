import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { diskCalls, type RootCalls } from '../../../core/disk-calls.ts';
import { replaceFile } from '../../../lib/files/paths.ts';
import { unless } from '../../../lib/files/unless.ts';
import { nameHash } from '../answer/names.ts';
import { appended, FILE_MODE } from './append-files.ts';
import { parsed } from './journal.ts';
import { FOLDER_MODE, readOwnFile, RunFiles } from './run-files.ts';

/** File with a line for each state, the newest last. */
export const STATE = 'state.journal';
const MAX_STATE_BYTES = 64 * 1024;
/** Longest name as it is: encoded ones may be longer than file systems allow. */
const MAX_NAME = 120;
export const RUN = /^[A-Za-z0-9]{1,16}$/;

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
  readonly #calls: RootCalls;
  /** Size of the states that were written so far; the first one replaces the file. */
  #stateBytes = Infinity;

  /** @param root absolute: TempStoragePath */
  constructor(root: string, { vhost, app, stream, kind }: StreamNames) {
    this.#calls = diskCalls.of(root);
    this.#path = join(root, ...[vhost, app, stream, kind].map(folderName));
  }

  run(key: string): RunFiles {
    return new RunFiles(join(this.#path, key));
  }

  /**
   * Reads the saved state; undefined where there is none, or a damaged one.
   * @throws errors of the system; Error for what is no small file; DiskHangs
   */
  async readState(): Promise<unknown> {
    const path = join(this.#path, STATE);
    const read = async () => await readOwnFile(path, MAX_STATE_BYTES).catch(unless('ENOENT'));
    const bytes = await this.#calls.unlessHanging(() => this.#calls.take(read));
    return bytes && lastOf(bytes.toString());
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

/** Value of the last whole line; undefined where there is none. */
function lastOf(text: string): unknown {
  for (const line of text.split('\n').reverse()) {
    const value = parsed(line);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Name of a folder for any name that a stream can have, without those that mean another folder. */
export function folderName(name: string): string {
  const encoded = encodeURIComponent(name).replace(/^\.+$/, (dots) => '%2E'.repeat(dots.length));
  return encoded.length <= MAX_NAME ? encoded : `${encoded.slice(0, MAX_NAME).replace(/%.?$/, '')}-${nameHash(name)}`;
}
