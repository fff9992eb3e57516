const PARTS = 5;

/**
 * Calls when this process has run for so long. A time in which it stood still, or the whole machine, counts as one part
 * of the wait at most, and what came meanwhile is heard before.
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

/** Resolves when a promise does, or when this process has run for so long. @throws as the promise rejects */
export async function atMost(ms: number, promise: Promise<void>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const inTime = afterRunning(ms, over.resolve);
  try {
    await Promise.race([promise, over.promise]);
  } finally {
    inTime();
  }
}
