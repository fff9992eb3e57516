/** The clock of a thread's work may go on by several milliseconds at a time: what is compared differs by far more. */
const LEAST_MS = 20;

/**
 * Milliseconds of work that something takes on this thread alone, whatever else the machine does: as often as it takes to
 * measure. To be compared with that of something else, as a generous ratio.
 */
export function costOf(work: () => void): number {
  // the first time it is compiled
  work();
  const before = process.threadCpuUsage();
  for (let times = 1; ; times++) {
    work();
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= 1000 * LEAST_MS) return (user + system) / 1000 / times;
  }
}
