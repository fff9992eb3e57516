import { runModel } from '../support/model/run.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Random } from './random.ts';

const TELL_EVERY = 500;

/**
 * Random calls to three nodes on one Redis, each held to what one server would answer.
 * @returns whether there was no difference
 */
export async function calls(seed: number, count: number, print: (text: string) => void): Promise<boolean> {
  print(`seed ${seed}, ${count} calls`);
  const end = new Teardown();
  const kinds = new Map<string, number>();
  try {
    const redis = await usedRedis(end);
    const nodes = await Promise.all(
      ['a', 'b', 'c'].map((id) => startNode(end, redis, id, { hostName: 'default.example.com' })),
    );
    const begun = performance.now();
    await runModel({
      nodes,
      random: new Random(seed),
      calls: count,
      onCall: (done, what) => {
        const [kind = ''] = what.split(' ');
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        if (done % TELL_EVERY === 0)
          print(`${String(done).padStart(7)} calls, ${Math.round((performance.now() - begun) / 1000)} s`);
      },
    });
    print(`no difference: ${[...kinds].map(([kind, number]) => `${kind} ${number}`).join(', ')}`);
    return true;
  } catch (error) {
    print(`DIFFERENT: ${(error as Error).message}`);
    return false;
  } finally {
    await end.run();
  }
}
