import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { freePorts } from './ports.ts';
import { until } from './until.ts';

/** None outlives its tests, also when they are given up. */
const running = new Set<ChildProcess>();
process.once('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** A rule as Prometheus tells of it. */
export interface Rule {
  readonly name: string;
  readonly query: string;
  readonly health: string;
  readonly lastError?: string;
}

/** A Prometheus on loopback. */
export class Prometheus {
  readonly #url: string;

  private constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}`;
  }

  /** @param files by name; `prometheus.yml` is its configuration */
  static async start(
    t: Pick<ExecutionContext, 'teardown'>,
    files: Readonly<Record<string, string>>,
  ): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'kiln-prometheus-'));
    const [port = 0] = freePorts(1);
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    const config = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`];
    const child = spawn('prometheus', [...config, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    running.add(child);
    t.teardown(async () => {
      running.delete(child);
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      await rm(folder, { recursive: true, force: true });
    });
    const prometheus = new Prometheus(port);
    await until('Prometheus is ready', async () => {
      if (child.exitCode !== null) throw new Error(`Prometheus has ended with code ${child.exitCode}`);
      return (await fetch(`${prometheus.#url}/-/ready`).catch(() => undefined))?.status === 200;
    });
    return prometheus;
  }

  /** How many series an expression has now. @throws Error when it cannot be evaluated */
  async count(query: string): Promise<number> {
    const { result } = await this.#get<{ result: readonly unknown[] }>('query', { query });
    return result.length;
  }

  async rules(): Promise<Rule[]> {
    const { groups } = await this.#get<{ groups: readonly { rules: readonly Rule[] }[] }>('rules', {});
    return groups.flatMap(({ rules }) => rules);
  }

  async #get<T>(what: string, parameters: Record<string, string>): Promise<T> {
    const answer = await fetch(`${this.#url}/api/v1/${what}?${new URLSearchParams(parameters)}`);
    const { status, error, data } = (await answer.json()) as { status: string; error?: string; data: T };
    if (status !== 'success') throw new Error(`${JSON.stringify(parameters)}: ${error}`);
    return data;
  }
}
