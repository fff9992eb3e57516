/**
 * Waits for a promise up to a time limit. A later rejection is ignored.
 * @param signal ends the wait early
 * @returns undefined after the limit, or when the signal aborts
 * @throws what the promise rejects with in time
 */
export async function within<T>(ms: number, promise: Promise<T>, signal?: AbortSignal): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const end = (): void => resolve(undefined);
  const timer = setTimeout(end, ms);
  if (signal?.aborted === true) end();
  signal?.addEventListener('abort', end);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}
