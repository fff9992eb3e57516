import { Matrix } from '../support/matrix/matrix.ts';
import { nameOf, TABLE } from '../support/matrix/table.ts';
import { Teardown } from '../support/programs/teardown.ts';

/**
 * Publishes every pair of `TABLE`, one after the other, and lets every player watch.
 * @returns whether all was as it should be
 */
export async function matrix(rounds: number, print: (line: string) => void): Promise<boolean> {
  const opened = await Matrix.open(rounds * TABLE.length);
  let sound = true;
  try {
    for (let round = 0; round < rounds; round++) {
      for (const cell of TABLE) {
        const teardown = new Teardown();
        const { objections, lines } = await opened
          .try(teardown, cell)
          .catch((error: Error) => ({ objections: [error.message], lines: [] }));
        await teardown.run();
        print(`${objections.length === 0 ? 'good' : 'BAD'}  ${nameOf(cell)}`);
        for (const line of [...lines, ...objections.map((objection) => `BAD  ${objection}`)]) print(`      ${line}`);
        if (objections.length > 0) sound = false;
      }
    }
  } finally {
    await opened.close();
  }
  return sound;
}
