import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { basic, TOKEN as API_TOKEN } from '../support/api/api.ts';
import { TOKEN } from '../support/server/kiln.ts';
import { median } from '../support/load/statistics.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { withServer } from './server.ts';
import { installed, wrk } from './wrk.ts';

const ROUNDS = 5;
export const AUTHORIZATION = `Authorization: ${basic(TOKEN)}`;

/** `share`: budget, of what bare fastify does in the same rounds. */
const CALLS = [
  { what: 'version', path: '/v1/version', share: 0.6 },
  { what: 'GET stream', path: '/v1/vhosts/default/apps/app/streams/live', share: 0.42 },
  { what: 'statistics', path: '/v1/stats/current', share: 0.54 },
  { what: 'statistics v2', path: '/v2/stats/current/vhosts/default', share: 0.58 },
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
        return CALLS.map(({ what, share }, i) => compare(what, rates[i] ?? [], bare, share));
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

/** Judges the median of the shares of all rounds: a share is of one time, whatever else the machine does. */
function compare(what: string, rates: readonly number[], bare: readonly number[], budget: number): Line {
  const share = median(rates.map((rate, round) => rate / (bare[round] ?? Number.NaN)));
  return {
    what: `API calls per second, 16 connections: ${what}`,
    measured: `${number(median(rates))} /s, ${number(share, 2)} of bare`,
    reference: `bare fastify ${number(median(bare))} /s`,
    budget: `>= ${number(budget, 2)} of bare fastify`,
    met: share >= budget,
  };
}
