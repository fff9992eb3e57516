/** Threads that libuv makes without UV_THREADPOOL_SIZE, and the most that it makes. */
const DEFAULT = 4;
const MOST = 1024;

/** Number of threads that files, names of hosts and cryptography of this process share. */
export function poolThreads(): number {
  const size = Number.parseInt(process.env.UV_THREADPOOL_SIZE ?? '', 10);
  return Number.isNaN(size) ? DEFAULT : Math.min(MOST, Math.max(1, size));
}
