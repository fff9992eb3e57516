import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { Program } from '../media/ffmpeg.ts';
import { GRAFANA } from './grafana.ts';
import type { Kiln } from '../server/kiln.ts';
import { freePorts } from '../network/ports.ts';
import { until } from '../time/until.ts';

/** The access token of the settings that are shipped. */
export const SCRAPE_TOKEN = 'kiln:secret';

/** A rule as Prometheus shows it. */
export interface Rule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

/** A Prometheus of a test's own: loopback, a free port, a folder that is gone afterwards. */
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
    const program = new Program('prometheus', [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ]);
    t.teardown(async () => {
      await program.stop();
      await rm(folder, { recursive: true, force: true });
    });
    const prometheus = new Prometheus(port);
    await until('Prometheus is ready', async () => {
      if (!program.running) throw new Error(`Prometheus has ended: ${program.stderr}`);
      return (await fetch(`${prometheus.#url}/-/ready`).catch(() => undefined))?.status === 200;
    });
    return prometheus;
  }

  /** How many series an expression has now. @throws Error when it cannot be evaluated */
  async count(query: string): Promise<number> {
    const { result } = await this.#get<{ result: readonly unknown[] }>('query', { query });
    return result.length;
  }

  /** The values of an expression now, one for each series. @throws Error when it cannot be evaluated */
  async values(query: string): Promise<number[]> {
    const { result } = await this.#get<{ result: readonly { value: readonly [number, string] }[] }>('query', { query });
    return result.map(({ value: [, text] }) => Number(text));
  }

  /** The rules, as soon as each was evaluated. */
  rules(): Promise<Rule[]> {
    return until('the rules were evaluated', async () => {
      const { groups } = await this.#get<{ groups: readonly { rules: readonly Rule[] }[] }>('rules', {});
      const found = groups.flatMap(({ rules }) => rules);
      return found.every(({ health }) => health !== 'unknown') && found;
    });
  }

  async #get<T>(what: string, parameters: Record<string, string>): Promise<T> {
    const answer = await fetch(`${this.#url}/api/v1/${what}?${new URLSearchParams(parameters)}`);
    const { status, error, data } = (await answer.json()) as { status: string; error?: string; data: T };
    if (status !== 'success') throw new Error(`${JSON.stringify(parameters)}: ${error}`);
    return data;
  }
}

/** The settings that are shipped, for these nodes; a second between scrapes unless it is given. */
export function shippedSettings(nodes: readonly Pick<Kiln, 'ports'>[], every = '1s'): Record<string, string> {
  const replaced = (text: string, [pattern, by]: readonly [RegExp, string]): string => {
    if (!pattern.test(text)) throw new Error(`prometheus.yml has nothing like ${pattern}`);
    return text.replace(pattern, by);
  };
  const read = (name: string): string => readFileSync(join(GRAFANA, 'prometheus', name), 'utf8');
  const changes: readonly (readonly [RegExp, string])[] = [
    [/scrape_interval: \S+/, `scrape_interval: ${every}`],
    [/evaluation_interval: \S+/, `evaluation_interval: ${every}`],
    [/password_file: \S+/, `password: ${SCRAPE_TOKEN.split(':')[1]}`],
    [/targets: .*/, `targets: [${nodes.map(({ ports }) => `'127.0.0.1:${ports.api}'`).join()}]`],
  ];
  return {
    'prometheus.yml': changes.reduce(replaced, read('prometheus.yml')),
    'kiln.rules.yml': read('kiln.rules.yml'),
  };
}

/** A scrape of a node that has `SCRAPE_TOKEN`. @throws Error when it is refused */
export async function scrape(
  node: Pick<Kiln, 'ports'>,
  accept = 'text/plain',
): Promise<{ type: string; text: string }> {
  const authorization = `Basic ${Buffer.from(SCRAPE_TOKEN).toString('base64')}`;
  const answer = await fetch(`http://127.0.0.1:${node.ports.api}/metrics`, { headers: { accept, authorization } });
  if (answer.status !== 200) throw new Error(`a scrape was answered with ${answer.status}`);
  return { type: answer.headers.get('content-type') ?? '', text: await answer.text() };
}

/** Names of the metrics that a scrape describes. */
export function describedIn(scraped: string): ReadonlySet<string> {
  return new Set(Array.from(scraped.matchAll(/^# HELP (\w+) \S/gm), ([, name = '']) => name));
}

/** What `promtool check` has to say; nothing when all is well. */
export function judged(args: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', ...args], { input, encoding: 'utf8' });
  return status === 0 ? '' : `${stdout}${stderr}`;
}
