import { setTimeout as delay } from 'node:timers/promises';

/** Calls that occupy a thread of libuv's pool, as `process.getActiveResourcesInfo()` names them. */
const IN_POOL = /^(?:FSReq|GetAddrInfo|GetNameInfo)/;
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

/**
 * Ends this process, at once. `process.exit()` waits for the threads of libuv's pool, which would be without end where a disk hangs: the
 * process is killed then, and has no code.
 */
export function leave(code: number): never {
  if (isHeld()) process.kill(process.pid, 'SIGKILL');
  process.exit(code);
}
