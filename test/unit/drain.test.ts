import test from 'ava';
import { Registry } from '../../src/core/registry.ts';
import { emptied } from '../../src/drain.ts';
import { addVhost } from '../support/live.ts';

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

test('nothing is waited for where there is no stream, nor after the wait was given up', async (t) => {
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
