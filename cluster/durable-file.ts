import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { access, link, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { StorageError } from './errors.ts';
import type { Json } from './types.ts';

type JsonObject = { readonly [key: string]: Json };

const MODE = 0o600;

export interface Opened {
  readonly file: DurableFile;
  /** undefined when there was no file, or none that could be read. */
  readonly content: JsonObject | undefined;
  /** New path of a file that could not be read, and the reason. */
  readonly damaged: { readonly movedTo: string; readonly reason: string } | undefined;
}

/**
 * A JSON file of this process alone. Every write replaces it as a whole and is on disk when it resolves;
 * whatever happens in between, the file is the old or the new one.
 */
export class DurableFile {
  readonly path: string;
  #lock = '';
  #closed = false;

  private constructor(path: string) {
    this.path = path;
  }

  /**
   * Locks and reads the file; makes its folder when missing.
   * @param accepts returns what is wrong with the content; undefined if it can be used
   * @throws StorageError when another process uses it, or it can be neither read nor renamed
   */
  static async open(path: string, accepts: (content: JsonObject) => string | undefined): Promise<Opened> {
    const file = new DurableFile(path);
    try {
      await mkdir(dirname(path), { recursive: true });
      file.#lock = await takeLock(`${path}.lock`);
    } catch (error) {
      throw storageError(path, error);
    }
    try {
      await removeTemporaries(path);
      const text = await readIfThere(path);
      if (text === undefined) return { file, content: undefined, damaged: undefined };
      const { content, reason } = read(text, accepts);
      if (reason === undefined) return { file, content, damaged: undefined };
      return { file, content: undefined, damaged: { movedTo: await putAside(path), reason } };
    } catch (error) {
      await file.close();
      throw storageError(path, error);
    }
  }

  /** @throws StorageError when it could not be written: the file is as before */
  async write(content: JsonObject): Promise<void> {
    if (this.#closed) throw new StorageError(`${this.path}: closed`);
    const temporary = temporaryName(this.path);
    try {
      const handle = await open(temporary, 'wx', MODE);
      try {
        await handle.writeFile(`${JSON.stringify(content, undefined, 2)}\n`);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, this.path);
      await syncFolder(dirname(this.path));
    } catch (error) {
      // if this fails, too, the next start removes it: the error to report is that of the write
      await rm(temporary, { force: true }).catch(() => undefined);
      throw storageError(this.path, error);
    }
  }

  /** Releases the lock. Idempotent. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await rm(this.#lock, { force: true });
  }
}

function read(text: string, accepts: (content: JsonObject) => string | undefined) {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    return { content: undefined, reason: (error as Error).message };
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    return { content: undefined, reason: 'it is not a JSON object' };
  }
  return { content: content as JsonObject, reason: accepts(content as JsonObject) };
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Moves a file to an unused name. */
async function putAside(path: string): Promise<string> {
  const stamp = new Date().toISOString().replace(/[:.]/g, '-');
  const aside = `${path}.damaged-${stamp}-${randomBytes(2).toString('hex')}`;
  await rename(path, aside);
  return aside;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Takes a lock that is held as long as the process runs, so it never goes stale by age, and the next process does not wait for it.
 * A lock names its process by id and start time, so a dead process holds nothing. The next process creates the next
 * generation of the lock, which only one can do, and which cannot be confused with the one to be removed.
 * @returns the path of the lock
 */
async function takeLock(path: string): Promise<string> {
  const { dir, base } = parse(path);
  const earlier = (await readdir(dir))
    .filter((name) => name === base || (name.startsWith(`${base}.`) && /^\d+$/.test(name.slice(base.length + 1))))
    .map((name) => ({ lock: join(dir, name), generation: Number(name.slice(base.length + 1)) || 1 }));
  for (const { lock } of earlier) {
    const [pid = '', start] = ((await readIfThere(lock)) ?? '').split(' ');
    if (/^\d+$/.test(pid) && start !== undefined && (await startOf(Number(pid))) === start) {
      throw new StorageError(`another Kiln server is running with this file (process ${pid})`);
    }
  }
  const next = Math.max(0, ...earlier.map(({ generation }) => generation)) + 1;
  const lock = next === 1 ? path : `${path}.${next}`;
  // Written before it is linked: an empty lock would look like that of a process that has ended.
  const own = temporaryName(path);
  try {
    await writeFile(own, `${process.pid} ${await startOf(process.pid)}`, { flag: 'wx', mode: MODE });
    await link(own, lock);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new StorageError('another Kiln server has started with this file at the same moment');
  } finally {
    await rm(own, { force: true });
  }
  for (const { lock: old } of earlier) await rm(old, { force: true });
  return lock;
}

function temporaryName(path: string): string {
  return `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
}

/** Removes the temporary files of processes that ended in the middle of a write. */
async function removeTemporaries(path: string): Promise<void> {
  const { dir, base } = parse(path);
  for (const name of await readdir(dir)) {
    if (name.startsWith(`${base}.`) && name.endsWith('.tmp')) await rm(join(dir, name), { force: true });
  }
}

/**
 * Start time of a process, in ticks since boot; undefined when there is none, or only a zombie (proc(5): Z, X). Without /proc it
 * only says whether the process exists.
 */
async function startOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(join('/proc', String(pid), 'stat'), 'latin1');
    const [state = '', ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return /^[ZXx]/.test(state) ? undefined : rest[18];
  } catch {
    const proc = await access('/proc/self/stat').then(
      () => true,
      () => false,
    );
    return proc ? undefined : isAlive(pid) ? 'alive' : undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function storageError(path: string, error: unknown): StorageError {
  return new StorageError(`${path}: ${(error as Error).message}`, { cause: error });
}
