import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after the given milliseconds, or as soon as the signal aborts. */
export async function pause(forMs: number, signal: AbortSignal): Promise<void> {
  await delay(forMs, undefined, { signal }).catch(() => undefined);
}
