import type { Random } from '../../soak/random.ts';
import type { Kiln } from '../server/kiln.ts';
import { NAMES, type Turn } from './calls.ts';
import { CONFIG_CALLS } from './config-calls.ts';
import { ServerState } from './state.ts';
import { STATISTICS_CALLS } from './statistics-calls.ts';
import { STREAM_CALLS } from './stream-calls.ts';

const CALLS = [...CONFIG_CALLS, ...STREAM_CALLS, ...STREAM_CALLS, ...STATISTICS_CALLS];
/** Virtual hosts are called by the names, and the one of Server.xml. */
const VHOSTS = [...NAMES, 'default'];
const APPS = [...NAMES, 'app'];

/** What a call is about: something that there is, as often as not. */
function target(state: ServerState, random: Random): Pick<Turn, 'vhost' | 'app' | 'stream'> {
  const { published } = state;
  if (published.length > 0 && random.chance(0.4)) return random.pick(published);
  const vhost = random.pick(VHOSTS);
  return { vhost, app: vhost === 'default' ? 'app' : random.pick(APPS), stream: random.pick(NAMES) };
}

export interface ModelRun {
  readonly nodes: readonly Kiln[];
  readonly random: Random;
  readonly calls: number;
  /** Hears what every call was. */
  readonly onCall?: (done: number, what: string) => void;
}

/**
 * Random calls to random nodes, one after the other, held to what one server would answer.
 * @throws Error that names the call, the node and the difference
 */
export async function runModel({ nodes, random, calls, onCall }: ModelRun): Promise<void> {
  const state = new ServerState();
  const told: string[] = [];
  try {
    for (let done = 1; done <= calls; done++) {
      const at = random.below(nodes.length);
      const turn: Turn = { state, random, nodes, node: nodes[at] as Kiln, ...target(state, random) };
      const call = random.pick(CALLS);
      const what = await call(turn).catch((error: Error) => {
        const before = told.slice(-5).join('; ');
        throw new Error(`call ${done} (${call.name}) at node ${at}: ${error.message}. Before: ${before}`, {
          cause: error,
        });
      });
      told.push(`${what} at ${at}`);
      onCall?.(done, what);
    }
  } finally {
    for (const { client } of state.streams()) client.close();
  }
}
