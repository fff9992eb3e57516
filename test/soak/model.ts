import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Outcome, Share } from '../support/virtual-cluster/model-child.ts';

const CHILD = new URL('../support/virtual-cluster/model-child.ts', import.meta.url);
const TELL_EVERY = 1000;
/** Failures that are told in full. */
const MOST_TOLD = 3;

/**
 * Clusters in virtual time with seeded faults, as many as seeds, one thread for each core.
 * @returns whether nothing was wrong with any
 */
export async function model(first: number, count: number, print: (text: string) => void): Promise<boolean> {
  print(`seeds ${first} to ${first + count - 1}`);
  const begun = performance.now();
  const failed: number[] = [];
  let done = 0;
  const onOutcome = ({ seed, failure }: Outcome): void => {
    done += 1;
    if (failure !== undefined && failed.push(seed) <= MOST_TOLD) print(failure);
    const seconds = Math.round((performance.now() - begun) / 1000);
    if (done % TELL_EVERY === 0) print(`${String(done).padStart(7)} runs, ${seconds} s, ${failed.length} failed`);
  };
  const threads = availableParallelism();
  const seeds = Array.from({ length: count }, (_, at) => first + at);
  await Promise.all(
    Array.from({ length: threads }, async (_, at) => {
      const workerData: Share = { seeds: seeds.filter((seed) => seed % threads === at) };
      const worker = new Worker(CHILD, { workerData });
      worker.on('message', onOutcome);
      await once(worker, 'exit');
    }),
  );
  const isWhole = done === count;
  if (!isWhole) print(`only ${done} of ${count} runs came to their end`);
  print(failed.length === 0 ? 'nothing was wrong' : `WRONG: seeds ${failed.join(', ')}`);
  return failed.length === 0 && isWhole;
}
