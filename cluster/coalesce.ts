/**
 * Makes many calls few: at most one run is under way and one waits. A call resolves with a run that began after it, so
 * it sees whatever was there when it was made.
 */
export function coalesced(run: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = (): Promise<void> => {
    current = run().finally(() => (current = undefined));
    return current;
  };
  return () => {
    if (current === undefined) return start();
    next ??= current.catch(() => undefined).then(() => {
      next = undefined;
      return start();
    });
    return next;
  };
}
