import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { pino } from 'pino';
import type { NodeRow } from '#cluster';
import { TaskHandOver, type TaskHandOverOptions } from '../../../src/tasks/hand-over.ts';
import type { TaskDefinition } from '../../../src/tasks/definition.ts';
import type { TaskRunner } from '../../../src/tasks/runner.ts';
import { Limiter } from '../../../src/lib/limiter.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const OTHER = { id: 'b', incarnation: 'b1', state: 'ready', full: false, load: 0, info: {} } as unknown as NodeRow;
const NAME = { kind: 'scheduled', vhost: 'default', app: 'app', id: 'news' };
const DEFINITION = { stored: true } as unknown as TaskDefinition;

test.serial('a task leaves a node that lacks what it needs for one that has it, and only then', async (t) => {
  virtualTime(t);
  const calls: unknown[] = [];
  const has = { here: true, there: false };
  const handOver = new TaskHandOver({
    name: NAME,
    cluster: { self: { id: 'a', incarnation: 'a1' }, nodes: () => [OTHER], state: 'online' },
    calls: {
      call: async (_node: unknown, _call: unknown, request: unknown) => {
        calls.push(request);
        return { ready: has.there };
      },
    },
    moves: new Limiter(1),
    suits: async () => has.here,
    log: pino({ level: 'silent' }),
  } as unknown as TaskHandOverOptions);
  t.teardown(() => handOver.cancel());
  const handedOver: string[] = [];
  const runner = { isInterruptible: false, handOver: ({ message }: Error) => handedOver.push(message) };
  const watch = (): void => handOver.watch(runner as unknown as TaskRunner, DEFINITION);
  watch();
  await delay(60_000);
  t.deepEqual(calls, [], 'as long as it has everything nobody is asked');
  has.here = false;
  await until('another node is asked', () => calls.length > 0);
  t.deepEqual(calls[0], { name: NAME, anyway: false });
  await delay(600_000);
  t.true(calls.length < 30, 'less and less often');
  t.deepEqual(handedOver, []);
  const before = calls.length;
  handOver.watch(runner as unknown as TaskRunner, { ...DEFINITION, spec: { other: true } });
  await until('it is asked again soon for another definition', () => calls.length > before);
  has.there = true;
  await until('it is handed over', () => handedOver.length > 0);
  await delay(600_000);
  t.deepEqual(handedOver, ['another node has what the task needs']);
});

test.serial('a task is handed over although it cannot be found out at first what it needs', async (t) => {
  virtualTime(t);
  const errors: string[] = [];
  const log = pino(
    { level: 'error' },
    { write: (line: string) => void errors.push((JSON.parse(line) as { msg: string }).msg) },
  );
  let asked = 0;
  const handOver = new TaskHandOver({
    name: NAME,
    cluster: { self: { id: 'a', incarnation: 'a1' }, nodes: () => [OTHER], state: 'online' },
    calls: { call: async () => ({ ready: true }) },
    handOvers: new Limiter(1),
    suits: async () => {
      if (asked++ === 0) throw new Error('EIO: i/o error');
      return true;
    },
    log,
  } as unknown as TaskHandOverOptions);
  const { promise: handedOver, resolve } = Promise.withResolvers<void>();
  handOver.begin({ isInterruptible: true, handOver: resolve } as unknown as TaskRunner, DEFINITION);
  await handedOver;
  t.is(asked, 2);
  t.deepEqual(errors, ['the task cannot be handed over now: trying again']);
  handOver.cancel();
});
