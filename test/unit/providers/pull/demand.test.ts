import test, { type ExecutionContext } from 'ava';
import { Registry } from '../../../../src/core/registry.ts';
import { kilnError } from '../../../../src/errors.ts';
import { StreamChanges } from '../../../../src/directory/stream-changes.ts';
import type { StreamName } from '../../../../src/directory/stream-key.ts';
import { Demand } from '../../../../src/providers/pull/demand.ts';
import { createVhost } from '../../../support/api/api.ts';
import { VIDEO } from '../../../support/server/live.ts';
import { silent } from '../../../support/ovt/ovt.ts';
import { until } from '../../../support/time/until.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

const NODE = { id: 'other', incarnation: '1' };
const ORIGIN = { location: '/app/', pass: { scheme: 'ovt', urls: { url: ['198.51.100.1:9000/app/'] } } };

/** A demand whose pulls find that somebody else has the stream already; `asked` are the calls of the fake directory. */
function open(t: ExecutionContext) {
  virtualTime(t);
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    origins: { origin: [ORIGIN] },
    applications: [{ name: 'app', type: 'live' }],
  });
  const application = registry.vhost('default').application('app');
  const asked: string[] = [];
  const remote = { isOwned: true, isKnown: false, change: (_name: StreamName): void => {} };
  const location = { owner: { ...NODE, fence: 1, meta: {} }, input: 'talk' };
  const directory = {
    locate: async () => (asked.push('locate'), remote.isKnown ? location : undefined),
    known: () => (asked.push('known'), remote.isKnown ? location : undefined),
    ownerOf: async () => (
      asked.push('ownerOf'),
      remote.isOwned ? { node: NODE, isSelf: false, live: false } : undefined
    ),
  };
  const changes = new StreamChanges(registry, {
    listen: (listener) => {
      remote.change = listener;
      return () => {};
    },
  });
  const pulled: string[] = [];
  const present = (_application: unknown, name: string): Promise<never> => {
    pulled.push(name);
    return Promise.reject(kilnError('streamExists'));
  };
  const placed: string[] = [];
  const elsewhere = (application: unknown, name: string): Promise<never> => {
    placed.push(name);
    return present(application, name);
  };
  const load = { isCrowded: false };
  const demand = new Demand({
    registry,
    directory,
    changes,
    isCrowded: () => load.isCrowded,
    pulls: { create: elsewhere, createHere: present },
    maps: { find: async () => undefined },
    log: silent,
  });
  t.teardown(() => {
    changes.close();
    registry.close('the test is over');
  });
  const change = (): void => remote.change({ vhost: 'default', app: 'app', stream: 'talk' });
  return {
    demand,
    application,
    asked,
    pulled,
    placed,
    load,
    remote,
    change,
    bring: () => demand.bring(application, 'talk', new URLSearchParams()),
  };
}

test.serial('a stream that another node pulls is waited for without asking again and again', async (t) => {
  const { asked, remote, change, bring } = open(t);
  const answer = bring();
  await until('the owner was asked for', () => asked.includes('ownerOf'));
  await new Promise((resolve) => setTimeout(resolve, 2000));
  t.true(asked.length < 6, `the directory was asked ${asked.length} times: ${asked.join(' ')}`);
  remote.isKnown = true;
  change();
  t.true(await answer);
});

test.serial('a stream that comes to this node is there with its output', async (t) => {
  const { application, asked, bring } = open(t);
  const answer = bring();
  await until('the directory was asked', () => asked.includes('locate'));
  const input = application.publish('talk', { type: 'Ovt', kind: 'ovt' }, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'talk');
  output.setTracks([VIDEO]);
  application.announce(output);
  t.true(await answer);
});

test.serial('a stream whose name is released is not waited for', async (t) => {
  const { asked, remote, change, bring } = open(t);
  const since = performance.now();
  const answer = bring();
  await until('the owner was asked for', () => asked.includes('ownerOf'));
  remote.isOwned = false;
  change();
  t.false(await answer);
  t.true(performance.now() - since < 5000);
});

test.serial('a stream whose application is closed is not waited for', async (t) => {
  const { application, asked, bring } = open(t);
  const answer = bring();
  await until('the directory was asked', () => asked.includes('locate'));
  application.close('removed');
  t.false(await answer);
});

test.serial('a stream that does not come is given up after some seconds', async (t) => {
  const { bring } = open(t);
  t.false(await bring());
});

test.serial('a stream is pulled for a task only if no node has it', async (t) => {
  const { demand, application, asked, pulled, remote } = open(t);
  demand.fetch(application, 'talk');
  await until('it is pulled', () => pulled.length > 0);
  t.deepEqual(pulled, ['talk']);
  remote.isKnown = true;
  asked.length = 0;
  demand.fetch(application, 'other');
  await until('the directory was asked', () => asked.includes('locate'));
  await new Promise((resolve) => setTimeout(resolve, 2000));
  t.deepEqual(pulled, ['talk']);
});

test.serial(
  'a stream that a viewer requests is pulled here, unless this node is crowded: then it is placed',
  async (t) => {
    const { bring, pulled, placed, load, remote } = open(t);
    remote.isKnown = true;
    t.true(await bring());
    t.deepEqual([pulled, placed], [['talk'], []]);
    load.isCrowded = true;
    t.true(await bring());
    t.deepEqual(placed, ['talk']);
  },
);
