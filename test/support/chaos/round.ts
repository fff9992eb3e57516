import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../soak/random.ts';
import { until } from '../time/until.ts';
import { audit, received, receivedInAll } from './audit.ts';
import type { ChaosCluster } from './cluster.ts';
import { FAULTS, type Mend } from './faults.ts';

const MOST_FAULTS = 5;
const APART_MS = 1500;
const LONGEST_MS = 7000;
const AGREED_WITHIN_MS = 60_000;
/** What each node tells of itself once a second is told one after the other: a stream that moved is in two, or none. */
const TOLD_WITHIN_MS = 20_000;

/**
 * Breaks some things, a little apart, lets time go by, mends them, and waits until everybody agrees.
 * @returns what was broken
 * @throws Error when they do not agree in time, nothing flows, or totals have fallen
 */
export async function round(cluster: ChaosCluster, random: Random): Promise<string> {
  const told: string[] = [];
  let loses = false;
  const taken = new Set<string>();
  const mends: Mend[] = [];
  const undos: Mend[] = [];
  const before = await receivedInAll(random.pick(cluster.nodes));
  await until('what was counted is with all nodes', async () =>
    (await Promise.all(cluster.nodes.map(receivedInAll))).every((all) => all >= before),
  );
  for (let left = 1 + random.below(MOST_FAULTS); left > 0; left--) {
    const fault = random.pick(FAULTS);
    const at = random.below(cluster.nodes.length);
    const of = fault.of === 'redis' ? 'redis' : `${fault.of} ${at}`;
    if (taken.has(of)) continue;
    if (fault.of !== 'nothing') taken.add(of);
    const pause = random.below(APART_MS);
    (fault.of === 'nothing' ? undos : mends).push(await fault.strike(cluster, at, random));
    loses ||= fault.loses === true;
    told.push(fault.of === 'redis' ? fault.name : `${fault.name} ${cluster.ids[at]}`);
    await delay(pause);
  }
  await delay(random.below(LONGEST_MS));
  // nobody mends in order; but what is asked of the API needs what was broken
  for (const mend of mends.toSorted(() => random.below(3) - 1)) await mend();
  for (const undo of undos) await undo();
  const what = told.join(', ');
  await agreed(cluster, what);
  if (!loses) {
    const after = await receivedInAll(random.pick(cluster.nodes));
    if (after < before) throw new Error(`after ${what}: ${before} bytes had come in, now they are ${after}`);
  }
  return what;
}

async function agreed(cluster: ChaosCluster, what: string): Promise<void> {
  let problems: string[] = [];
  const sound = async (): Promise<boolean> => {
    problems = await audit(cluster).catch((error: Error) => [error.message]);
    return problems.length === 0;
  };
  const { names } = cluster;
  const [node] = cluster.nodes;
  try {
    await until('all agree', sound, AGREED_WITHIN_MS);
    const before = node === undefined ? [] : await received(node, names);
    await until('all streams flow', async () => {
      const now = node === undefined ? [] : await received(node, names);
      problems = names
        .filter((_, at) => (now[at] ?? 0) <= (before[at] ?? 0))
        .map((name) => `nothing comes in of ${name}`);
      return problems.length === 0;
    });
    await until('all agree still', sound, TOLD_WITHIN_MS);
  } catch (error) {
    throw new Error(`after ${what}: ${(error as Error).message}: ${problems.slice(0, 8).join('; ')}`, { cause: error });
  }
}
