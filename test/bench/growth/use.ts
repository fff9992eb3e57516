import { cpus } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { cpuSeconds, mainThreadSeconds } from '../../support/load/usage.ts';
import type { CpuUse } from './cpu-left.ts';

/** What a window took, in percent of a core. */
export interface Use extends CpuUse {
  /** All servers and their children. */
  readonly cpu: number;
  /** The busiest of their event loops. */
  readonly loop: number;
}

/**
 * Measures what servers and the programs that load them take for some seconds.
 * @param servers process ids @param loads process ids by name, each with one thread that matters
 */
export async function measureUse(
  servers: readonly number[],
  loads: Readonly<Record<string, number>>,
  seconds: number,
): Promise<Use> {
  const read = () => ({
    time: performance.now(),
    idle: cpus().reduce((sum, { times }) => sum + times.idle, 0),
    cpu: servers.reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    loops: servers.map(mainThreadSeconds),
    loads: Object.values(loads).map(mainThreadSeconds),
  });
  const before = read();
  await delay(seconds * 1000);
  const after = read();
  const ms = after.time - before.time;
  const percent = (now: number, then = 0) => ((now - then) / ms) * 1e5;
  const loop = Math.max(...after.loops.map((now, i) => percent(now, before.loops[i])));
  const threads = Object.keys(loads).map((name, i) => [name, percent(after.loads[i] ?? 0, before.loads[i])] as const);
  return {
    cpu: percent(after.cpu, before.cpu),
    loop,
    idle: ((after.idle - before.idle) / ms / cpus().length) * 100,
    threads: Object.fromEntries([...threads, ['the event loop of the server', loop]]),
  };
}
