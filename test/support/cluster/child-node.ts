import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ExecutionContext } from 'ava';
import type { ClaimOptions, RedisClusterOptions } from '#cluster';
import { TIMING } from './cluster.ts';
import { until } from '../time/until.ts';

/** A node in a process of its own (`cluster-child.ts`) that holds a key and acts on it, with the lines that it has said. */
export async function startChild(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  id: string,
  key: string,
  {
    timing = TIMING,
    silence = 'stop',
    port = 0,
  }: {
    readonly timing?: RedisClusterOptions['timing'];
    readonly silence?: ClaimOptions['silence'];
    readonly port?: number;
  } = {},
) {
  const args = [
    join(import.meta.dirname, 'cluster-child.ts'),
    url,
    id,
    key,
    JSON.stringify(timing),
    silence,
    `${port}`,
  ];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await until('the child acts', () => lines.some((line) => line.startsWith('act')));
  return { process: child, lines };
}
