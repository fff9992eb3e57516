import { randomBytes } from 'node:crypto';
import { link, open, readFile, readlink, rename, stat, unlink } from 'node:fs/promises';
import { isAlive } from '../process-usage.ts';
import { pause } from '../pause.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { temporaryBeside } from './paths.ts';
import { unless } from './unless.ts';

/** Age of a lock after which its process counts as dead: the steps take milliseconds. */
const STALE_MS = 10_000;
const AGAIN_MS = 20;
const NEVER = new AbortController().signal;

const mutex = new KeyedMutex();

/**
 * Runs a step while no other user of the same lock runs one, on any machine: the folder may be shared. For steps of
 * milliseconds. A lock that a process holds as long as it runs is another problem: `cluster/durable-file.ts`.
 * @param path of the lock: a file that exists while the lock is held
 * @throws what the step throws; errors of the system
 */
export async function withLock<T>(path: string, step: () => Promise<T>): Promise<T> {
  return await mutex.run(path, async () => {
    await take(path);
    try {
      return await step();
    } finally {
      await unlink(path).catch(unless('ENOENT'));
    }
  });
}

async function take(path: string): Promise<void> {
  const home = await homeOf();
  // the age is measured here: clocks of machines may differ
  let seen = { lock: '', since: 0 };
  for (;;) {
    const file = await open(path, 'wx').catch(unless('EEXIST'));
    if (file !== undefined) {
      try {
        await file.writeFile(`${home} ${process.pid}`);
      } finally {
        await file.close();
      }
      return;
    }
    const lock = await identityOf(path);
    const now = performance.now();
    if (lock !== seen.lock) seen = { lock, since: now };
    if (now - seen.since > STALE_MS || (await isOfDead(path, home))) await remove(path, lock);
    else await pause(AGAIN_MS, NEVER);
  }
}

/** Scope in which process ids are unique, as text; a random one if it is unknown. */
async function homeOf(): Promise<string> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    return `${boot.trim()} ${await readlink('/proc/self/ns/pid')}`;
  } catch {
    return randomBytes(8).toString('hex');
  }
}

/** Whether the holder is known to have died. A lock with this process's id was left by an earlier one: this one is free. */
async function isOfDead(path: string, home: string): Promise<boolean> {
  const holder = (await readFile(path, 'utf8').catch(unless('ENOENT'))) ?? '';
  const pid = holder.startsWith(`${home} `) ? Number(holder.slice(home.length)) : 0;
  if (!Number.isInteger(pid) || pid <= 0) return false;
  return pid === process.pid || !isAlive(pid);
}

/** Removes a lock, and restores it if it is another one: another process may have replaced it in between. */
async function remove(path: string, lock: string): Promise<void> {
  const aside = temporaryBeside(path);
  await rename(path, aside).catch(unless('ENOENT'));
  const found = await identityOf(aside);
  if (found === '') return;
  if (found !== lock) await link(aside, path).catch(unless('EEXIST'));
  await unlink(aside);
}

async function identityOf(path: string): Promise<string> {
  const found = await stat(path).catch(unless('ENOENT'));
  return found === undefined ? '' : `${found.ino} ${found.mtimeMs}`;
}
