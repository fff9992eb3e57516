import { availableParallelism } from 'node:os';
import { cpuSecondsOf, readProc } from '../lib/process-usage.ts';

/** Measures the load of this node's processes: others on the machine are not counted. */
export class LoadMeter {
  #utilization = performance.eventLoopUtilization();
  #at = performance.now();
  #own = ownSeconds();
  /** CPU seconds of each child process so far; undefined before the first call. */
  #children: ReadonlyMap<string, number> | undefined;

  /**
   * Load since the last call: the greater of event loop use and the CPU use of this process and its children, of all cores.
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

/** CPU seconds of child processes, media workers and encoders; none without /proc. */
function childSeconds(): Map<string, number> {
  // children are listed by the thread that started them, which is the first one: it has the number of the process
  const pids = readProc(`/proc/self/task/${process.pid}/children`)?.split(' ').filter(Boolean) ?? [];
  return new Map(
    pids.flatMap((pid) => {
      const seconds = cpuSecondsOf(pid);
      return seconds === undefined ? [] : [[pid, seconds]];
    }),
  );
}
