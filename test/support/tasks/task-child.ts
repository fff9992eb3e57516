/**
 * A node in a process of its own that takes fake tasks: `task-child.ts <redis url> <id>`. Says `act <task> <fence> <time>`
 * for each act.
 */
import { openNode } from '../cluster/cluster.ts';
import { FakeKind, openTasks } from './fake-task.ts';

const [url = '', id = ''] = process.argv.slice(2);
const cluster = await openNode({ teardown: () => {} }, id, { url });
openTasks(
  cluster,
  new FakeKind(({ name, fence }, at) => {
    process.stdout.write(`act ${name.id} ${fence} ${at}\n`);
  }),
);
process.stdout.write('ready\n');
