import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { emptied, HandedOver } from '../../../src/server/drain.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { videoTrack } from '../../support/media/packets.ts';

const SOURCE = { type: 'Rtmp', kind: 'rtmp' } as const;
const OPTIONS = { replace: false, maxConnections: 0 } as const;

function open() {
  const registry = new Registry();
  addVhost(registry);
  const application = registry.vhost('default').application('app');
  const state = { over: false };
  const wait = (signal: AbortSignal) => emptied(registry, signal).then(() => (state.over = true));
  return { application, registry, state, wait };
}

/** What is due in this turn of the event loop has happened. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a node is empty when its last stream has gone, and not before', async (t) => {
  const { application, registry, state, wait } = open();
  const [one, other] = ['one', 'other'].map((name) => application.publish(name, SOURCE, OPTIONS));
  const waiting = wait(new AbortController().signal);
  one?.close('it left');
  await turn();
  t.false(state.over);
  other?.close('it left');
  await turn();
  t.true(state.over);
  await waiting;
  t.is(registry.listenerCount('starting'), 0);
});

test('a drain without streams does not wait, nor does one whose wait was given up', async (t) => {
  const { application, registry, state, wait } = open();
  await wait(new AbortController().signal);
  state.over = false;
  application.publish('one', SOURCE, OPTIONS);
  const end = new AbortController();
  const waiting = wait(end.signal);
  await turn();
  t.false(state.over);
  end.abort();
  await waiting;
  t.is(registry.listenerCount('starting'), 0);
});

test('viewers of what is handed over stay until another node has it, of what just ends they do not', async (t) => {
  const registry = new Registry();
  addVhost(registry);
  const outputs = ['moves', 'ends', 'over'].map((name) => goLive(registry, 'app', name, [videoTrack()]));
  const known = new Set<string>();
  const listeners = new Set<() => void>();
  const handedOver = new HandedOver(registry, {
    known: (_application, name) => (known.has(name) ? ({} as never) : undefined),
    listen: (listener) => {
      const look = (): void => listener({} as never);
      listeners.add(look);
      return () => listeners.delete(look);
    },
  });
  const state = { over: false };
  await handedOver.settled(new AbortController().signal);
  const [moves, ends, over] = outputs as [OutputStream, OutputStream, OutputStream];
  moves.input.handsOver = over.input.handsOver = true;
  for (const { input } of [moves, ends]) input.close('it left');
  over.input.end('it was deleted');
  const waiting = handedOver.settled(new AbortController().signal).then(() => (state.over = true));
  for (const listener of listeners) listener();
  await turn();
  t.false(state.over);
  known.add('moves');
  for (const listener of listeners) listener();
  await waiting;
  t.is(listeners.size, 0);
});
