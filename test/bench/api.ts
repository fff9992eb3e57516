import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { basic, TOKEN as API_TOKEN } from '../support/api/api.ts';
import { TOKEN } from '../support/server/kiln.ts';
import { median } from '../support/load/statistics.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { withServer } from './server.ts';
import { installed, wrk } from './wrk.ts';

const ROUNDS = 3;
/** What bare fastify did where the budgets were set. */
const BARE_THERE = 104_000;
export const AUTHORIZATION = `Authorization: ${basic(TOKEN)}`;

const CALLS = [
  { what: 'version', path: '/v1/version', budget: 45_000 },
  { what: 'GET stream', path: '/v1/vhosts/default/apps/app/streams/live', budget: 20_000 },
  { what: 'statistics', path: '/v1/stats/current', budget: 25_000 },
  { what: 'statistics v2', path: '/v2/stats/current/vhosts/default', budget: 25_000 },
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
          bare.push(await wrk(`http://127.0.0.1:${yardstick.port}/`));
          for (const [i, { path }] of CALLS.entries()) {
            rates[i]?.push(await wrk(`http://127.0.0.1:${kiln.ports.api}${path}`, [AUTHORIZATION]));
          }
        }
        return CALLS.map(({ what, budget }, i) => compare(what, median(rates[i] ?? []), median(bare), budget));
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

/** One stream among many costs what one among few does. */
async function compareCounts(): Promise<Line> {
  const servers = [
    await startServer('many-streams.ts', String(FEW)),
    await startServer('many-streams.ts', String(MANY)),
  ];
  try {
    const authorization = `Authorization: ${basic(API_TOKEN)}`;
    const rates = servers.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, { port }] of servers.entries()) {
        const url = `http://127.0.0.1:${port}/v1/vhosts/default/apps/app/streams/live7`;
        rates[i]?.push(await wrk(url, [authorization]));
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

/** Starts a program of this folder that says its port. */
export async function startServer(file: string, ...args: string[]): Promise<{ port: string; stop(): void }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { port: line.toString().trim(), stop: () => void child.kill() };
}

/** The budget goes with the machine: it is a share of what bare fastify does. */
function compare(what: string, rate: number, bare: number, budget: number): Line {
  const share = budget / BARE_THERE;
  return {
    what: `API calls per second, 16 connections: ${what}`,
    measured: `${number(rate)} /s, ${number(rate / bare, 2)} of bare`,
    reference: `bare fastify ${number(bare)} /s`,
    budget: `>= ${number(share, 2)} of bare fastify`,
    met: rate / bare >= share,
  };
}
