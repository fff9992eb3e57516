import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';

/** Calls that occupy a thread of libuv's pool, as `process.getActiveResourcesInfo()` names them. */
const IN_POOL = /^(?:FSReq|CloseReq|GetAddrInfo|GetNameInfo)/;
/** Time for those that are about to return. */
const GRACE_MS = 500;
const LOOK_MS = 20;

function isHeld(): boolean {
  return process.getActiveResourcesInfo().some((kind) => IN_POOL.test(kind));
}

/** Whether calls of the system do not return, for a moment at least. */
export async function threadsAreHeld(): Promise<boolean> {
  for (let ms = 0; ms < GRACE_MS && isHeld(); ms += LOOK_MS) await delay(LOOK_MS);
  return isHeld();
}

/** Makes the system call that ends this process with a code, without anything that was to be done before. */
export function immediateExit(): (code: number) => void {
  // read when it is needed: it takes its time, and few processes end so; not by import(), which the pool may have to read
  const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
  return koffi.load(null).func('void _exit(int)');
}

/**
 * Ends this process with a code, as `process.exit()` does, but does not wait for the threads of libuv's pool as that does: without end,
 * where a disk hangs.
 */
export function leave(code: number): never {
  const end = immediateExit();
  process.on('exit', () => end(code));
  process.exit(code);
}
