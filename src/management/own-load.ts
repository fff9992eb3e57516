import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** What /proc counts CPU time in: the same on every Linux. */
const TICKS_PER_SECOND = 100;

/** Measures how busy a node is by its own doing: others on the same machine are not counted. */
export class LoadMeter {
  #utilization = performance.eventLoopUtilization();
  #at = performance.now();
  #own = ownSeconds();
  /** CPU seconds of each child so far, by process; undefined before the first call. */
  #children: ReadonlyMap<string, number> | undefined;

  /**
   * Since the last call: the busier of the event loop and of what this process and its children use of all cores.
   * @returns 0 idle to 1 busy
   */
  measure(): number {
    const children = childSeconds();
    const [before, at, own, known] = [this.#utilization, this.#at, this.#own, this.#children];
    this.#utilization = performance.eventLoopUtilization();
    this.#at = performance.now();
    this.#own = ownSeconds();
    this.#children = children;
    const { utilization } = performance.eventLoopUtilization(this.#utilization, before);
    const ofChildren =
      known === undefined ? [] : [...children].map(([pid, seconds]) => Math.max(0, seconds - (known.get(pid) ?? 0)));
    const used = ofChildren.reduce((sum, seconds) => sum + seconds, this.#own - own);
    const share = used / Math.max(0.001, (this.#at - at) / 1000) / availableParallelism();
    return Math.round(Math.min(1, Math.max(utilization, share)) * 100) / 100;
  }
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/**
 * Of the processes that this one has started, media workers and encoders; of none where there is no /proc. Nothing there
 * waits for a disk: it is read at once, which costs a tenth of what handing it to other threads does.
 */
function childSeconds(): Map<string, number> {
  // each is listed with the thread that has started it
  const threads = entered(() => readdirSync('/proc/self/task')) ?? [];
  const pids = threads.flatMap(
    (thread) => readProc(`/proc/self/task/${thread}/children`)?.split(' ').filter(Boolean) ?? [],
  );
  return new Map(
    pids.flatMap((pid) => {
      const stat = readProc(`/proc/${pid}/stat`);
      if (stat === undefined) return [];
      // proc(5): the fields after the name, which is in brackets and may have any; utime and stime are the 14th and 15th
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return [[pid, (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND]];
    }),
  );
}

function readProc(path: string): string | undefined {
  return entered(() => readFileSync(path, 'latin1').trim());
}

/** What is read of a process, undefined when that has ended. */
function entered<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
