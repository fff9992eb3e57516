/**
 * A node in a process of its own with a task that counts: `counting-child.ts <redis url> <id>`. Each line on its input is
 * a step: `publish <stream>`, `write <packets>`. Says `ready`, `running <task>`, `counted <total>` and `wrote <packets>`.
 */
import { createInterface } from 'node:readline';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { openNode } from '../cluster/cluster.ts';
import { CountingKind, publish, write, type Count } from './counting-task.ts';
import { openTasks } from './fake-task.ts';

const [url = '', id = ''] = process.argv.slice(2);
const say = (line: string): boolean => process.stdout.write(`${line}\n`);
const node = openTasks(
  await openNode({ teardown: () => {} }, id, { url }),
  new CountingKind(({ total }: Count) => say(`counted ${total}`)),
);
let output: OutputStream | undefined;
createInterface({ input: process.stdin }).on('line', (line) => {
  const [step, argument = ''] = line.split(' ');
  if (step === 'publish') void publish(node, argument).then((made) => (output = made));
  else if (output !== undefined) {
    write(output, Number(argument));
    say(`wrote ${argument}`);
  }
});
setInterval(() => {
  for (const task of node.kind.running.keys()) say(`running ${task}`);
}, 50);
say('ready');
