import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { cpuSeconds } from '../support/load/usage.ts';

const run = promisify(execFile);
const CONNECTIONS = 16;

/** Whether a program is on PATH. */
export function installed(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** Answers per second that wrk gets from a URL. @throws Error when answers were no successes */
export async function wrk(url: string, headers: readonly string[] = []): Promise<number> {
  return Number(/Requests\/sec: +([\d.]+)/.exec(await load(url, headers))?.[1] ?? Number.NaN);
}

/**
 * Answers that wrk gets for each second of CPU time of a server and its children: whoever else runs on the machine does not count.
 * @throws Error when answers were no successes
 */
export async function wrkPerCpuSecond(
  pid: number,
  url: string,
  headers: readonly string[] = [],
  connections = CONNECTIONS,
): Promise<number> {
  const before = cpuSeconds(pid);
  const count = Number(/(\d+) requests in/.exec(await load(url, headers, connections))?.[1] ?? Number.NaN);
  return count / (cpuSeconds(pid) - before);
}

async function load(url: string, headers: readonly string[], connections = CONNECTIONS): Promise<string> {
  const options = ['-t1', `-c${connections}`, '-d2s', ...headers.flatMap((header) => ['-H', header])];
  const { stdout } = await run('wrk', [...options, url]);
  const failed = /Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)/.exec(stdout);
  if (failed !== null) throw new Error(`${url}: ${failed[0]}`);
  return stdout;
}
