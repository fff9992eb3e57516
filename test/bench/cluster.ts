import { setTimeout } from 'node:timers/promises';
import { basic } from '../support/api/api.ts';
import { TOKEN, type Kiln } from '../support/server/kiln.ts';
import { Program } from '../support/load/program.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import type { LlhlsCommands } from '../support/load/programs/watch-llhls.ts';
import { cpuSeconds } from '../support/load/usage.ts';
import { median } from '../support/load/statistics.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';
import { atMost, number, type Line, type Measurement } from './measurement.ts';
import { installed, wrk } from './wrk.ts';

const ROUNDS = 3;
const AUTHORIZATION = `Authorization: ${basic(TOKEN)}`;
const MASTER = '/app/live/llhls.m3u8';
/** The owner's part of what a join costs the node that it comes to, in percent. */
const OWNER_PART = 10;
const QUIET_MS = 2000;
/** The same of what players cost who play there. */
const FOLLOWED_PART = 20;
const FOLLOWERS = 20;
const FOLLOWED_MS = 8000;
const FORGOTTEN_MS = 12_000;
const STREAM = '/v1/vhosts/default/apps/app/streams/live';

/** What it costs that calls and players come to a node that has to ask another one. */
export const cluster: Measurement = {
  name: 'cluster',
  run: async ({ clip }) => {
    if (!installed('wrk') || !installed('redis-server'))
      return [{ what: 'forwarded calls', measured: 'skipped: wrk or redis-server is not installed' }];
    const endings: (() => unknown)[] = [];
    const owner = { teardown: (end: () => unknown) => void endings.push(end) };
    const publishers = new Program<PublishCommands>('publish.ts');
    try {
      const redis = await usedRedis(owner);
      const nodes = [await startNode(owner, redis, 'a'), await startNode(owner, redis, 'b')] as const;
      await publishers.ask('start', { port: nodes[0].ports.rtmp, clip, streams: ['live'] });
      for (const node of nodes) await until('both know it', async () => (await node.api(STREAM)).status === 200);
      return [await compareNodes(nodes), await compareJoins(nodes), await compareFollowers(nodes)];
    } finally {
      await publishers.stop();
      for (const end of endings.toReversed()) await end();
    }
  },
};

/** One call after the other, to the node that has the stream and to the one that has not. */
async function compareNodes(nodes: readonly [owner: Kiln, other: Kiln]): Promise<Line> {
  const rates = nodes.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { ports }] of nodes.entries())
      rates[i]?.push(await wrk(`http://127.0.0.1:${ports.api}${STREAM}`, [AUTHORIZATION]));
  }
  const [direct = 0, forwarded = 0] = rates.map(median);
  const costMs = 1000 / forwarded - 1000 / direct;
  return {
    what: 'API calls per second, 16 connections: GET stream forwarded to its owner',
    measured: `${number(forwarded)} /s, ${number(costMs, 2)} ms more each`,
    reference: `at the owner ${number(direct)} /s`,
  };
}

/** LL-HLS players that come to the node that has not the stream: what the owner has of them. */
async function compareJoins([owner, other]: readonly [owner: Kiln, other: Kiln]): Promise<Line> {
  const url = other.httpUrl(MASTER);
  await until('the playlist begins', async () => (await fetch(url)).status === 200);
  const rates: number[] = [];
  const costs: number[][] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const quiet = await used([owner, other], () => setTimeout(QUIET_MS));
    const busy = await used([owner, other], async () => void rates.push(await wrk(url)));
    costs.forEach((cost, i) => cost.push((busy[i] ?? 0) - (quiet[i] ?? 0)));
  }
  const rate = median(rates);
  const [ofOwner = 0, ofOther = 0] = costs.map(median);
  return atMost({
    what: 'LL-HLS players who come to a node that relays: CPU of the owner, of what that node uses for them',
    unit: '%',
    digits: 1,
    values: [(100 * Math.max(0, ofOwner)) / ofOther],
    budget: [OWNER_PART],
    reference: `${number(rate)} players/s, ${number((ofOther * 1000) / rate, 2)} ms each`,
  });
}

/** LL-HLS players who play on the node that has not the stream: what the owner has of them, whatever their number. */
async function compareFollowers([owner, other]: readonly [owner: Kiln, other: Kiln]): Promise<Line> {
  const players = new Program<LlhlsCommands>('watch-llhls.ts');
  const costs: number[][] = [[], []];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const quiet = await used([owner, other], () => setTimeout(FOLLOWED_MS));
      await players.ask('start', { port: other.ports.http, master: MASTER, hints: true, count: FOLLOWERS });
      await setTimeout(QUIET_MS);
      const busy = await used([owner, other], () => setTimeout(FOLLOWED_MS));
      await players.ask('stop', undefined);
      // so that the next round finds nothing of this one
      await setTimeout(FORGOTTEN_MS);
      costs.forEach((cost, i) => cost.push((busy[i] ?? 0) - (quiet[i] ?? 0)));
    }
  } finally {
    await players.stop();
  }
  const [ofOwner = 0, ofOther = 0] = costs.map(median);
  return atMost({
    what: `${FOLLOWERS} LL-HLS players on a node that relays: CPU of the owner, of what that node uses for them`,
    unit: '%',
    digits: 1,
    values: [(100 * Math.max(0, ofOwner)) / ofOther],
    budget: [FOLLOWED_PART],
    reference: `${number(100 * ofOther, 2)} % of a core`,
  });
}

/** Seconds of CPU that servers use for each second of something. */
async function used(servers: readonly Kiln[], act: () => Promise<unknown>): Promise<number[]> {
  const before = servers.map(({ pid }) => cpuSeconds(pid));
  const since = performance.now();
  await act();
  const seconds = (performance.now() - since) / 1000;
  return servers.map(({ pid }, i) => (cpuSeconds(pid) - (before[i] ?? 0)) / seconds);
}
