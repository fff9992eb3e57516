import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { PreparedIndexes } from '../../../src/playback/prepared-indexes.ts';
import type { Added } from '../../../src/recording/finished/recordings.ts';
import { until } from '../../support/time/until.ts';

function open(t: ExecutionContext, prepare: (id: string, signal: AbortSignal) => Promise<void>) {
  const listeners = new Set<(added: Added) => void>();
  const prepared = new PreparedIndexes({
    recordings: {
      onAdded: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    reads: { prepare: (_names, id, signal) => prepare(id, signal) },
    isPlayed: (_vhost, app) => app === 'app',
    log: pino({ level: 'silent' }),
  });
  t.teardown(() => prepared.close());
  const add = (id: string, more: Partial<Added> = {}): void => {
    for (const listener of listeners) listener({ vhost: 'v', app: 'app', container: 'MPEG-TS', id, ...more });
  };
  return { prepared, listeners, add };
}

test('indexes of finished MPEG-TS files are made one at a time, whatever becomes of one', async (t) => {
  const begun: string[] = [];
  let running = 0;
  const { add } = open(t, async (id) => {
    begun.push(id);
    t.is(++running, 1);
    await new Promise(setImmediate);
    running--;
    if (id === 'a') throw new Error('it is damaged');
  });
  for (const id of ['a', 'b', 'c']) add(id);
  await until('indexes', () => begun.length === 3);
  add('d');
  await until('indexes', () => begun.length === 4);
  t.deepEqual(begun, ['a', 'b', 'c', 'd']);
});

test('no index is made ahead of MP4 files, nor where recordings are not played', async (t) => {
  const begun: string[] = [];
  const { add } = open(t, async (id) => void begun.push(id));
  add('a', { container: 'MP4' });
  add('b', { app: 'off' });
  add('c');
  await until('indexes', () => begun.length > 0);
  t.deepEqual(begun, ['c']);
});

test('indexes that are not made yet are left when the server stops', async (t) => {
  const begun: string[] = [];
  const { prepared, listeners, add } = open(t, async (id, signal) => {
    begun.push(id);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  for (const id of ['a', 'b']) add(id);
  await until('indexes', () => begun.length === 1);
  await prepared.close();
  await prepared.close();
  t.deepEqual(begun, ['a']);
  t.is(listeners.size, 0);
});

test('a limited number of files waits for its index', async (t) => {
  const begun: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const { add } = open(t, async (id) => {
    begun.push(id);
    await promise;
  });
  for (let number = 0; number < 2000; number++) add(`${number}`);
  resolve();
  await until('indexes', () => begun.length === 1001);
  await new Promise(setImmediate);
  t.is(begun.length, 1001);
});
