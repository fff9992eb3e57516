import { parentPort, workerData } from 'node:worker_threads';
import { failureOf } from './explain.ts';
import { Lua } from './lua.ts';

/** Some seeds of a run of the model, in a thread of its own. */
export interface Share {
  readonly seeds: readonly number[];
}

/** What is told of each seed. */
export interface Outcome {
  readonly seed: number;
  readonly failure: string | undefined;
}

const lua = await Lua.start();
for (const seed of (workerData as Share).seeds) {
  const outcome: Outcome = { seed, failure: await failureOf(seed, lua) };
  parentPort?.postMessage(outcome);
}
