import test from 'ava';
import { Registry } from '../../../../src/core/registry.ts';
import { kilnError } from '../../../../src/errors.ts';
import { StreamChanges } from '../../../../src/directory/stream-changes.ts';
import type { StreamName } from '../../../../src/directory/stream-key.ts';
import type { StreamNames } from '../../../../src/directory/stream-names.ts';
import { PullKind } from '../../../../src/providers/pull/kind.ts';
import { addVhost } from '../../../support/server/live.ts';
import { silent } from '../../../support/ovt/ovt.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const SPEC = {
  urls: ['ovt://127.0.0.1/app/far'],
  relay: false,
  noInputFailoverMs: 0,
  unusedMs: 0,
  retryCount: 0,
  failbackMs: 0,
  isFromStore: false,
};

/** A pull whose name another stream has until `free`. */
function open() {
  const registry = new Registry();
  addVhost(registry, { providers: { ovt: {} } as never });
  const application = registry.vhost('default').application('app');
  let tell: (name: StreamName) => void = () => {};
  const changes = new StreamChanges(registry, { listen: (listener) => ((tell = listener), () => {}) });
  const state = { taken: true, tried: 0, opened: 0, closed: 0 };
  const publish = async (): Promise<never> => {
    state.tried++;
    throw state.taken ? kilnError('streamExists') : new Error('it has the name');
  };
  const names = { publish } as unknown as StreamNames;
  const source = async () => {
    state.opened++;
    return { connection: undefined, play: async () => {}, close: () => void state.closed++ };
  };
  const kind = new PullKind({ names, changes, open: source, log: silent });
  const run = (persistent: boolean) =>
    kind.run({
      name: { kind: 'pull', vhost: 'default', app: 'app', id: 'live' },
      spec: SPEC,
      persistent,
      application,
      isNew: false,
      signal: new AbortController().signal,
      fence: 1,
      valid: true,
      progress: undefined,
      keep: () => {},
      started: () => {},
      show: () => {},
      changed: () => {},
      handsOver: () => {},
    });
  const free = (): void => {
    state.taken = false;
    tell({ vhost: 'default', app: 'app', stream: 'live' });
  };
  return { run, free, state };
}

test.serial('a pull hears that its name is free, and does not ask meanwhile', async (t) => {
  virtualTime(t);
  const { run, free, state } = open();
  const running = run(true);
  running.catch(() => {});
  await until('it has tried', () => state.tried === 1);
  setTimeout(free, 5000);
  await t.throwsAsync(running, { message: 'it has the name' });
  t.is(state.tried, 2);
});

test.serial(
  'a pull that goes on connects while it claims the name, and no connection is left without it',
  async (t) => {
    virtualTime(t);
    const { run, free, state } = open();
    const running = run(true);
    running.catch(() => {});
    await until('it has tried', () => state.tried === 1);
    t.is(state.opened, 1);
    free();
    await t.throwsAsync(running, { message: 'it has the name' });
    await until('it is closed', () => state.closed === 1);
  },
);

test.serial(
  'a name that does not become free: one that is on demand is left, a persistent one tried again later',
  async (t) => {
    virtualTime(t);
    const since = performance.now();
    const [one, other] = [open(), open()];
    await t.throwsAsync(one.run(true), { code: 'streamExists' });
    await other.run(false);
    t.deepEqual([one.state.tried, other.state.tried], [2, 2]);
    t.true(performance.now() - since < 30_000);
  },
);
