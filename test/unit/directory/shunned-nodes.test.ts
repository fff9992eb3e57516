import test from 'ava';
import { ShunnedNodes } from '../../../src/directory/shunned-nodes.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

test.serial('a node is not asked for some seconds after it failed last', async (t) => {
  virtualTime(t);
  const nodes = new ShunnedNodes();
  const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const node = (id: string) => ({ id, incarnation: `of ${id}` });
  nodes.add(node('a'));
  nodes.add(node('b'));
  await after(4000);
  nodes.add(node('a'));
  t.deepEqual([...nodes.incarnations].toSorted(), ['of a', 'of b']);
  await after(2000);
  t.deepEqual([...nodes.incarnations], ['of a']);
  await after(4000);
  t.is(nodes.incarnations.size, 0);
});
