import { randomBytes } from 'node:crypto';
import { link, open, readFile, readlink, rename, stat, unlink } from 'node:fs/promises';
import { isAlive } from '../process-usage.ts';
import { pause } from '../pause.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { temporaryBeside } from './paths.ts';
import { unless } from './unless.ts';

/** A lock that has been the same for so long was left by a process that has died: what it guards takes milliseconds. */
const STALE_MS = 10_000;
const AGAIN_MS = 20;
const NEVER = new AbortController().signal;

const mutex = new KeyedMutex();

/**
 * Runs a step while no other user of the same lock runs one, on any machine: the folder may be shared. For steps of
 * milliseconds. A lock that a process holds as long as it runs is another problem: `cluster/durable-file.ts`.
 * @param path of a file that exists as long as somebody has the lock
 * @throws what the step throws; what the system says
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
  // ages are measured here: the clocks of two machines may differ
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

/** Where the numbers of processes are those of this one; a random text where that is not known. */
async function homeOf(): Promise<string> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8');
    return `${boot.trim()} ${await readlink('/proc/self/ns/pid')}`;
  } catch {
    return randomBytes(8).toString('hex');
  }
}

/** Whether its holder is known to have died. One with the number of this process had it before: here it is free. */
async function isOfDead(path: string, home: string): Promise<boolean> {
  const holder = (await readFile(path, 'utf8').catch(unless('ENOENT'))) ?? '';
  const pid = holder.startsWith(`${home} `) ? Number(holder.slice(home.length)) : 0;
  if (!Number.isInteger(pid) || pid <= 0) return false;
  return pid === process.pid || !isAlive(pid);
}

/** Another process may remove it at the same time, and already have one of its own there. */
async function remove(path: string, lock: string): Promise<void> {
  const aside = temporaryBeside(path);
  await rename(path, aside).catch(unless('ENOENT'));
  const found = await identityOf(aside);
  if (found === '') return;
  if (found !== lock) await link(aside, path).catch(unless('EEXIST'));
  await unlink(aside);
}

/** Empty for one that is not there. */
async function identityOf(path: string): Promise<string> {
  const found = await stat(path).catch(unless('ENOENT'));
  return found === undefined ? '' : `${found.ino} ${found.mtimeMs}`;
}
