import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';

/** What /proc counts CPU time in: the same on every Linux. */
const TICKS_PER_SECOND = 100;
/** Event loops above this are busy, and are no more below that. */
const BUSY = 0.9;
const CALM = 0.8;
/** How many reports in a row a busy one makes a node full. */
const REPORTS = 5;

/** How busy a node is by its own doing: others on the same machine are not counted. */
export interface OwnLoad {
  /** 0 idle to 1 busy: the busier of the event loop and of what this process and its children use of all cores. */
  readonly load: number;
  /** The event loop, which carries the media, is at its end. */
  readonly full: boolean;
}

/** Measures a node between one call and the next. */
export class LoadMeter {
  readonly #saturation = new Saturation();
  #utilization = performance.eventLoopUtilization();
  #at = performance.now();
  #own = ownSeconds();
  /** CPU seconds of each child so far, by process; undefined before the first call. */
  #children: ReadonlyMap<string, number> | undefined;

  /** Of the time since the last call. */
  async measure(): Promise<OwnLoad> {
    const children = await childSeconds();
    const [before, at, own, known] = [this.#utilization, this.#at, this.#own, this.#children];
    this.#utilization = performance.eventLoopUtilization();
    this.#at = performance.now();
    this.#own = ownSeconds();
    this.#children = children;
    const { utilization } = performance.eventLoopUtilization(this.#utilization, before);
    const ofChildren = known === undefined ? [] : [...children].map(([pid, seconds]) => Math.max(0, seconds - (known.get(pid) ?? 0)));
    const used = ofChildren.reduce((sum, seconds) => sum + seconds, this.#own - own);
    const share = used / Math.max(0.001, (this.#at - at) / 1000) / availableParallelism();
    return { load: Math.round(Math.min(1, Math.max(utilization, share)) * 100) / 100, full: this.#saturation.add(utilization) };
  }
}

/** Whether an event loop stays busy: a burst is none, and what goes up and down about the limit does not flicker. */
export class Saturation {
  #busy = 0;

  /** @param utilization 0 to 1, since the last one. @returns whether it is too much by now */
  add(utilization: number): boolean {
    if (utilization > BUSY) this.#busy = Math.min(REPORTS, this.#busy + 1);
    else if (utilization < CALM || this.#busy < REPORTS) this.#busy = 0;
    return this.#busy === REPORTS;
  }
}

function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Of the processes that this one has started, media workers and encoders; of none where there is no /proc. */
async function childSeconds(): Promise<Map<string, number>> {
  const pids = await readProc(`/proc/self/task/${process.pid}/children`);
  const times = await Promise.all(pids.split(' ').filter(Boolean).map(async (pid) => [pid, await readProc(`/proc/${pid}/stat`)] as const));
  // one may have ended meanwhile
  return new Map(times.filter(([, stat]) => stat !== '').map(([pid, stat]) => {
    // proc(5): the fields after the name, which is in brackets and may have any; utime and stime are the 14th and 15th
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return [pid, (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND] as const;
  }));
}

async function readProc(path: string): Promise<string> {
  try {
    return (await readFile(path, 'latin1')).trim();
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
