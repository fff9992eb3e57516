const PARTS = 5;

/**
 * Calls back when this process has run for the given time. If the process or the machine stood still, that counts as one
 * part of the wait at most, and what has arrived in the meantime is handled first.
 * @returns its undo
 */
export function afterRunning(ms: number, then: () => void): () => void {
  let left = PARTS;
  let timer: NodeJS.Timeout | undefined;
  let last: NodeJS.Immediate | undefined;
  const wait = (): void => {
    if (left-- > 0) timer = setTimeout(wait, ms / PARTS);
    else last = setImmediate(then);
  };
  wait();
  return () => {
    clearTimeout(timer);
    clearImmediate(last);
  };
}

/** Resolves with the promise, or when this process has run for the given time. @throws what the promise rejects with */
export async function atMost(ms: number, promise: Promise<void>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const inTime = afterRunning(ms, over.resolve);
  try {
    await Promise.race([promise, over.promise]);
  } finally {
    inTime();
  }
}
