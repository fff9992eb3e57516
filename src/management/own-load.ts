import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { cpuSecondsOf, readProc, unlessEnded } from '../lib/process-usage.ts';

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

/** Of the processes that this one has started, media workers and encoders; of none where there is no /proc. */
function childSeconds(): Map<string, number> {
  // each is listed with the thread that has started it
  const threads = unlessEnded(() => readdirSync('/proc/self/task')) ?? [];
  const pids = threads.flatMap(
    (thread) => readProc(`/proc/self/task/${thread}/children`)?.split(' ').filter(Boolean) ?? [],
  );
  return new Map(
    pids.flatMap((pid) => {
      const seconds = cpuSecondsOf(pid);
      return seconds === undefined ? [] : [[pid, seconds]];
    }),
  );
}
