import { unlessAborted } from './unless-aborted.ts';

/**
 * Waits for a promise up to a time limit. A later rejection is ignored.
 * @param signal ends the wait early
 * @returns undefined after the limit, or when the signal aborts
 * @throws what the promise rejects with in time
 */
export async function within<T>(ms: number, promise: Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), ms);
  try {
    return await unlessAborted(promise, signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]));
  } finally {
    clearTimeout(timer);
  }
}
