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
