import { readFileSync } from 'node:fs';

/** Unit of CPU time in /proc: the same on every Linux. */
const TICKS_PER_SECOND = 100;

export interface ProcessUsage {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
}

export interface ProcessState {
  /** Running, or waiting for a CPU or a disk. */
  readonly isRunnable: boolean;
  readonly cpuSeconds: number;
}

/** CPU seconds of a process so far; undefined when it has ended, and without /proc. */
export function cpuSecondsOf(pid: number | string): number | undefined {
  return stateOf(pid)?.cpuSeconds;
}

/** State of a process, or of its first thread; undefined when it has ended, and without /proc. */
export function stateOf(pid: number | string): ProcessState | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // proc(5): the fields after the name, which is in brackets and may contain any; utime and stime are the 14th and 15th
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  return { isRunnable: 'RD'.includes(fields[0] ?? ''), cpuSeconds };
}

/** CPU time and memory of a process; undefined when it has ended, and without /proc. */
export function usageOf(pid: number): ProcessUsage | undefined {
  const cpuSeconds = cpuSecondsOf(pid);
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(readProc(`/proc/${pid}/status`) ?? '') ?? [];
  return cpuSeconds === undefined ? undefined : { cpuSeconds, residentBytes: Number(kibibytes ?? 0) * 1024 };
}

/** Whether a process runs, of whatever user: a zombie, or a dead one, does not (proc(5): Z, X). */
export function isAlive(pid: number): boolean {
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat !== undefined) return !/^[ZXx]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Reads a file of a process, undefined when it has ended. Synchronously: /proc never waits for a disk. */
export function readProc(path: string): string | undefined {
  return unlessEnded(() => readFileSync(path, 'latin1').trim());
}

function unlessEnded<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
