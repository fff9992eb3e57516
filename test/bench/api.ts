import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { basic, TOKEN as API_TOKEN } from '../support/api/api.ts';
import { TOKEN } from '../support/server/kiln.ts';
import { median } from '../support/load/statistics.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { rateLine, ROUNDS } from './ratio.ts';
import { withServer } from './server.ts';
import { installed, wrkPerCpuSecond } from './wrk.ts';

export const AUTHORIZATION = `Authorization: ${basic(TOKEN)}`;

const CALLS = [
  { what: 'version', path: '/v1/version', reached: 0.6 },
  { what: 'GET stream', path: '/v1/vhosts/default/apps/app/streams/live', reached: 0.38 },
  { what: 'statistics', path: '/v1/stats/current', reached: 0.54 },
  { what: 'statistics v2', path: '/v2/stats/current/vhosts/default', reached: 0.55 },
];

/** Calls of the management API, beside a server of fastify alone. */
export const api: Measurement = {
  name: 'api',
  run: async ({ clip }) => {
    if (!installed('wrk')) return [{ what: 'API calls per second', measured: 'skipped: wrk is not installed' }];
    const yardstick = await startServer('bare-fastify.ts');
    try {
      const lines = await withServer(async ({ kiln, publishers }) => {
        await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
        await kiln.liveStream('live');
        const bare: number[] = [];
        const rates = CALLS.map((): number[] => []);
        for (let round = 0; round < ROUNDS; round++) {
          bare.push(await wrkPerCpuSecond(yardstick.pid, `http://127.0.0.1:${yardstick.port}/`));
          for (const [i, { path }] of CALLS.entries()) {
            const url = `http://127.0.0.1:${kiln.ports.api}${path}`;
            rates[i]?.push(await wrkPerCpuSecond(kiln.pid, url, [AUTHORIZATION]));
          }
        }
        return CALLS.map(({ what, reached }, i) =>
          rateLine({
            what: `API calls per second and core, 16 connections: ${what}`,
            unit: '/s',
            digits: 0,
            values: rates[i] ?? [],
            references: bare,
            of: 'bare Fastify',
            reached,
          }),
        );
      });
      return [...lines, await compareCounts()];
    } finally {
      yardstick.stop();
    }
  },
};

const FEW = 10;
const MANY = 1000;
/** Less than what two measurements of the same thing differ by. */
const SAME = 0.9;
/** What `deploy/start` gives a server. */
const MEMORY = ['--min-semi-space-size=8', '--max-semi-space-size=8', '--no-allocation-site-pretenuring'];

/** One stream among many costs what one among few does. */
async function compareCounts(): Promise<Line> {
  const servers = [
    await startServer('many-streams.ts', [String(FEW)], MEMORY),
    await startServer('many-streams.ts', [String(MANY)], MEMORY),
  ];
  try {
    const authorization = `Authorization: ${basic(API_TOKEN)}`;
    const rates = servers.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, { pid, port }] of servers.entries()) {
        const url = `http://127.0.0.1:${port}/v1/vhosts/default/apps/app/streams/live7`;
        rates[i]?.push(await wrkPerCpuSecond(pid, url, [authorization]));
      }
    }
    const [few = 0, many = 0] = rates.map(median);
    return {
      what: `GET stream with ${number(MANY)} streams alive`,
      measured: `${number(many)} /s, ${number(many / few, 2)} of that with ${FEW}`,
      reference: `${number(few)} /s with ${FEW}`,
      budget: `>= ${number(SAME, 2)} of that with ${FEW}`,
      met: many / few >= SAME,
    };
  } finally {
    for (const server of servers) server.stop();
  }
}

/** Starts a program of this folder that says its port. @param flags of Node */
export async function startServer(
  file: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<{ pid: number; port: string; stop(): void }> {
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: child.pid as number, port: line.toString().trim(), stop: () => void child.kill() };
}
