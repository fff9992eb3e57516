import test from 'ava';
import { pino } from 'pino';
import type { NodeRow } from '#cluster';
import { HandOver, type HandOverOptions } from '../../../src/tasks/hand-over.ts';
import type { TaskDefinition } from '../../../src/tasks/definition.ts';
import type { TaskRunner } from '../../../src/tasks/runner.ts';
import { Turns } from '../../../src/tasks/turns.ts';
import { virtualTime } from '../../support/virtual-time.ts';

const OTHER = { id: 'b', incarnation: 'b1', state: 'ready', full: false, load: 0, info: {} } as unknown as NodeRow;
const DEFINITION = { stored: true } as unknown as TaskDefinition;

test('a task is handed over although it cannot be found out at first what it needs', async (t) => {
  virtualTime(t);
  const errors: string[] = [];
  const log = pino(
    { level: 'error' },
    { write: (line: string) => void errors.push((JSON.parse(line) as { msg: string }).msg) },
  );
  let asked = 0;
  const handOver = new HandOver({
    name: { kind: 'scheduled', vhost: 'default', app: 'app', id: 'news' },
    cluster: { self: { id: 'a', incarnation: 'a1' }, nodes: () => [OTHER], state: 'online' },
    calls: { call: async () => ({ ready: true }) },
    handOvers: new Turns(1),
    suits: async () => {
      if (asked++ === 0) throw new Error('EIO: i/o error');
      return true;
    },
    log,
  } as unknown as HandOverOptions);
  const { promise: handedOver, resolve } = Promise.withResolvers<void>();
  handOver.begin({ isInterruptible: true, handOver: resolve } as unknown as TaskRunner, DEFINITION);
  await handedOver;
  t.is(asked, 2);
  t.deepEqual(errors, ['the task cannot be handed over now: trying again']);
  handOver.cancel();
});
