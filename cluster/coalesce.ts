/**
 * Makes many calls few: at most one run is under way and one waits. A call resolves with a run that began after it, so
 * it sees whatever was there when it was made.
 */
export function coalesced(run: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    if (next !== undefined) return next;
    const own = last
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return run();
      });
    last = own;
    next = own;
    return own;
  };
}
