import { readdirSync, readFileSync } from 'node:fs';

/** Ticks of the kernel's CPU accounting in a second (USER_HZ). */
const TICKS = 100;
const KIB = 1024;

/** A process and what it has started, itself first. */
export function processTree(pid: number): number[] {
  const tree = [pid];
  for (const parent of tree) {
    for (const thread of list(`/proc/${parent}/task`)) {
      tree.push(...read(`/proc/${parent}/task/${thread}/children`).split(' ').filter(Boolean).map(Number));
    }
  }
  return tree;
}

/** The name of the program that a process runs; empty when it is gone. */
export function programOf(pid: number): string {
  return read(`/proc/${pid}/comm`).trim();
}

/** Whether a process is there that has not ended yet. */
export function isRunning(pid: number): boolean {
  return /^State:\s+[^ZX]/m.test(read(`/proc/${pid}/status`));
}

/** Seconds of CPU time that a process and its children have used, those included that have ended and were waited for. */
export function cpuSeconds(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + ticks(each), 0) / TICKS;
}

/** Seconds of CPU time that the main thread of a process has used, which is where Node's event loop turns. */
export function mainThreadSeconds(pid: number): number {
  const [user = 0, system = 0] = statFields(`/proc/${pid}/task/${pid}/stat`);
  return (user + system) / TICKS;
}

/** Bytes of memory in RAM: of a process and of each of its children. */
export function residentBytesOfEach(pid: number): number[] {
  return processTree(pid).map((each) => {
    const found = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${each}/status`));
    return Number(found?.[1] ?? 0) * KIB;
  });
}

/** Bytes of memory in RAM, of a process and its children together. */
export function residentBytes(pid: number): number {
  return residentBytesOfEach(pid).reduce((sum, bytes) => sum + bytes, 0);
}

/** Bytes of memory of a process and its children, where what several share is counted once (PSS). */
export function proportionalBytes(pid: number): number {
  const kib = processTree(pid).map((each) => /^Pss:\s+(\d+) kB/m.exec(read(`/proc/${each}/smaps_rollup`))?.[1]);
  return kib.reduce((sum, text) => sum + Number(text ?? 0), 0) * KIB;
}

/** Open files and sockets of a process and its children. */
export function openFiles(pid: number): number {
  return processTree(pid).reduce((sum, each) => sum + list(`/proc/${each}/fd`).length, 0);
}

function ticks(pid: number): number {
  return statFields(`/proc/${pid}/stat`).reduce((sum, each) => sum + each, 0);
}

/** User and system time, and those of children that have ended. */
function statFields(file: string): number[] {
  // the name of the program, in brackets, may hold spaces
  return read(file)
    .replace(/^.*\) /s, '')
    .split(' ')
    .slice(11, 15)
    .map(Number);
}

/** What is gone counts as nothing. */
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
