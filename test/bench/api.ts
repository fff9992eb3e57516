import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { TOKEN } from '../support/kiln.ts';
import { median } from '../support/load/statistics.ts';
import { number, type Line, type Measurement } from './measurement.ts';
import { withServer } from './server.ts';
import { installed, wrk } from './wrk.ts';

const BARE = join(import.meta.dirname, 'bare-fastify.ts');
const ROUNDS = 3;
/** What bare fastify did where the budgets were set. */
const BARE_THERE = 104_000;
const AUTHORIZATION = `Authorization: Basic ${Buffer.from(TOKEN).toString('base64')}`;

const CALLS = [
  { what: 'version', path: '/v1/version', budget: 45_000 },
  { what: 'GET stream', path: '/v1/vhosts/default/apps/app/streams/live', budget: 20_000 },
  { what: 'statistics', path: '/v1/stats/current', budget: 25_000 },
];

/** Calls of the management API, beside a server of fastify alone. */
export const api: Measurement = {
  name: 'api',
  run: async ({ clip }) => {
    if (!installed('wrk')) return [{ what: 'API calls per second', measured: 'skipped: wrk is not installed' }];
    const yardstick = spawn(process.execPath, [BARE], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(yardstick.stdout, 'data')) as [Buffer];
    try {
      return await withServer(async ({ kiln, publishers }) => {
        await publishers.ask('start', { port: kiln.ports.rtmp, clip, streams: ['live'] });
        await kiln.liveStream('live');
        const bare: number[] = [];
        const rates = CALLS.map((): number[] => []);
        for (let round = 0; round < ROUNDS; round++) {
          bare.push(await wrk(`http://127.0.0.1:${line.toString().trim()}/`));
          for (const [i, { path }] of CALLS.entries()) {
            rates[i]?.push(await wrk(`http://127.0.0.1:${kiln.ports.api}${path}`, [AUTHORIZATION]));
          }
        }
        return CALLS.map(({ what, budget }, i) => compare(what, median(rates[i] ?? []), median(bare), budget));
      });
    } finally {
      yardstick.kill();
    }
  },
};

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
