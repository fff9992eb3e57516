import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../soak/random.ts';
import type { Mend } from '../chaos/faults.ts';
import type { Kiln } from '../server/kiln.ts';
import type { Watched } from '../load/programs/watch-named.ts';
import type { Audience } from './audience.ts';
import { compareFiles } from './bytes.ts';
import type { TreeCluster } from './cluster.ts';
import { SILENT_SECONDS, TREE_FAULTS } from './faults.ts';
import { openChain } from './levels.ts';
import { sendersOf } from './senders.ts';

const MOST_FAULTS = 4;
const APART_MS = 1500;
/** A node stands still for at least so long, and so much longer at most. */
const SHORTEST_MS = 1000;
const LONGER_MS = 5000;
/** Of the clip that is published. */
const FRAMERATE = 30;
const GOP = FRAMERATE;
/** When this process is late by so much, in seconds, the machine has stood still, and with it the nodes, for all that is known. */
const LATE_SECONDS = 0.5;

interface Outcome {
  readonly told: string;
  /** Nodes whose viewers are gone. */
  readonly ended: ReadonlySet<number>;
  /** How many frames a WebRTC viewer of each node may have missed. */
  readonly allowed: readonly number[];
}

/**
 * Opens a stream that comes by three levels of nodes, breaks some of those in between, and looks after it, and after one that is there
 * since before: viewers of nodes that live on have missed nothing by LL-HLS, and no more than was allowed by WebRTC; all nodes have
 * the same files.
 * @returns what was broken, and what it cost
 * @throws Error when anything of that is otherwise
 */
export async function treeRound(cluster: TreeCluster, lasting: Audience, random: Random): Promise<string> {
  await cluster.complete();
  const audience = await openChain(cluster, 1);
  let told = 'nothing yet';
  const lateness = monitorEventLoopDelay();
  lateness.enable();
  try {
    const streams = [lasting, audience];
    const before = await Promise.all(streams.map((stream) => stream.watched()));
    const outcome = await breakSome(cluster, audience, random);
    ({ told } = outcome);
    for (const at of outcome.ended) for (const stream of streams) await stream.leave(at);
    // nodes that come back are known to all before anybody comes to them
    await cluster.complete();
    for (const at of outcome.ended) for (const stream of streams) await stream.join(at);
    const costs: string[] = [];
    for (const [i, stream] of streams.entries()) {
      await stream.playsOn();
      const late = lateness.max / 1e9;
      const extra = late < LATE_SECONDS ? 0 : Math.ceil((late + SILENT_SECONDS) * FRAMERATE) + GOP;
      costs.push(checkMissing(cluster, stream.name, before[i] ?? new Map(), await stream.watched(), outcome, extra));
      const { files, differing } = await compareFiles(cluster.owner, cluster.nodes.slice(1), stream.master);
      if (differing.length > 0) throw new Error(`files differ: ${differing.slice(0, 5).join('; ')}`);
      if (files === 0) throw new Error(`no file of ${stream.name} was compared`);
    }
    const ways = audience.chain
      .slice(1)
      .map((at) => `${cluster.ids[at]} ${sendersOf(cluster.nodes[at] as Kiln, audience.name).join()}`);
    return `${told}; missing ${costs.join(', ')}; from ${ways.join(', ')}; ${lateOf(lateness)}`;
  } catch (error) {
    throw new Error(`after ${told}: ${(error as Error).message}; ${lateOf(lateness)}`, { cause: error });
  } finally {
    lateness.disable();
    await audience.close();
  }
}

function lateOf({ max }: ReturnType<typeof monitorEventLoopDelay>): string {
  return `this machine up to ${Math.round(max / 1e6)} ms late`;
}

/** Breaks some things between the owner and the last node, a little apart, lets time go by and mends them. */
async function breakSome(cluster: TreeCluster, { chain }: Audience, random: Random): Promise<Outcome> {
  const told: string[] = [];
  const ended = new Set<number>();
  const allowed = cluster.nodes.map(() => 0);
  const mends: Mend[] = [];
  const undos: Mend[] = [];
  const taken = new Set<string>();
  for (let left = 1 + random.below(MOST_FAULTS); left > 0; left--) {
    const fault = random.pick(TREE_FAULTS);
    const at = random.pick(chain.slice(1, 3));
    const of = fault.of === 'redis' ? 'redis' : `${fault.of} ${at}`;
    const pause = random.below(APART_MS);
    if (taken.has(of)) continue;
    taken.add(of);
    const since = performance.now();
    const mend = await fault.strike(cluster, at, random);
    (fault.of === 'nothing' ? undos : mends).push(async () => {
      await mend();
      const seconds = (performance.now() - since) / 1000;
      for (const node of chain.slice(1)) {
        const silent = fault.stands === true && node === at ? seconds : fault.silent;
        if (silent !== undefined) allowed[node] = (allowed[node] ?? 0) + Math.ceil(silent * FRAMERATE) + GOP;
      }
    });
    if (fault.ends === true) ended.add(at);
    told.push(fault.of === 'redis' ? fault.name : `${fault.name} ${cluster.ids[at]}`);
    await delay(pause);
  }
  await delay(SHORTEST_MS + random.below(LONGER_MS));
  // what is asked of the API needs what was broken
  for (const mend of mends.toSorted(() => random.below(3) - 1)) await mend();
  for (const undo of undos) await undo();
  return { told: told.join(', '), ended, allowed };
}

/** @returns how many frames the viewer of each node missed, of how many it may have @throws Error when one missed more */
function checkMissing(
  { ids }: TreeCluster,
  name: string,
  before: ReadonlyMap<number, Watched>,
  after: ReadonlyMap<number, Watched>,
  { ended, allowed }: Outcome,
  extra: number,
): string {
  const costs = [...after].map(([at, { missing, lost }]) => {
    const known = ended.has(at) ? undefined : before.get(at);
    const [missed, packets] = [missing - (known?.missing ?? 0), lost - (known?.lost ?? 0)];
    const most = (allowed[at] ?? 0) + extra;
    const cost = `${ids[at]} ${missed}/${most}${packets > 0 ? ` (${packets} packets lost)` : ''}`;
    if (missed > most) throw new Error(`the WebRTC viewer of ${name} has missed too many frames: ${cost}`);
    return cost;
  });
  return `${name} ${costs.join(' ')}`;
}
