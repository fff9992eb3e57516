import test from 'ava';
import type { Relays } from '../../../src/relay/relays.ts';
import { goLive, VIDEO } from '../../support/server/live.ts';
import { relayNodes } from '../../support/ovt/relay-nodes.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

/** Puts a stream out on a node, and tells the directory. */
function publish(registry: Parameters<typeof goLive>[0]) {
  const output = goLive(registry, 'app', 'talk', [VIDEO]);
  registry.vhost('default').application('app').announce(output);
  return output;
}

/** The relay, with a viewer. */
async function watched(relays: Relays, application: Parameters<Relays['find']>[0]) {
  const output = await relays.find(application, 'talk');
  if (output === undefined) throw new Error('not relayed');
  output.addRelay();
  return output;
}

test.serial(
  'a relay waits for an event instead of asking while no node has the stream, and goes on at once',
  async (t) => {
    virtualTime(t);
    const { far, application, relays, add, asked } = relayNodes(t);
    const first = publish(far);
    const output = await watched(relays, application);
    first.input.close('the publisher went');
    await until('the relay has noticed', () => asked.includes('catchUp'));
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    t.true(asked.length < 10, `the directory was asked ${asked.length} times: ${asked.join(' ')}`);
    const since = performance.now();
    const next = publish(add('third'));
    await until('it is relayed again', () => next.watched);
    t.true(performance.now() - since < 1000);
    t.false(output.closed);
  },
);

test.serial('a relay is closed when no node continues the stream in time', async (t) => {
  virtualTime(t);
  const { far, application, relays } = relayNodes(t);
  const first = publish(far);
  const output = await watched(relays, application);
  first.input.close('the publisher went');
  await until('the viewers of this node are let go', () => output.closed);
  t.is(application.relays.size, 0);
});

test.serial('a stream that ended on purpose is waited for only while its name is in use', async (t) => {
  virtualTime(t);
  const { far, application, relays, asked } = relayNodes(t);
  const first = publish(far);
  const output = await watched(relays, application);
  const since = performance.now();
  first.input.end('deleted');
  await until('the relay has ended', () => output.closed);
  t.true(performance.now() - since < 5000);
  t.true(asked.length < 10);
});

test.serial(
  'a viewer that comes while the owner cannot be reached is held until another node has the stream',
  async (t) => {
    virtualTime(t);
    const { far, application, relays, add, dead } = relayNodes(t);
    const first = publish(far);
    const third = add('third');
    dead.add('far');
    setTimeout(() => {
      first.input.close('its node died');
      publish(third);
    }, 5000);
    const since = performance.now();
    const output = await relays.find(application, 'talk');
    t.false(output?.closed);
    t.true(performance.now() - since < 6000);
  },
);

test.serial('a viewer of an owner that cannot be reached is answered in time', async (t) => {
  virtualTime(t);
  const { far, application, relays, dead } = relayNodes(t);
  publish(far);
  dead.add('far');
  const since = performance.now();
  await t.throwsAsync(relays.find(application, 'talk'), { code: 'ownerUnreachable' });
  t.true(performance.now() - since < 10_000);
});

test.serial(
  'a viewer of an owner that does not answer is answered sooner than of one that may have died',
  async (t) => {
    virtualTime(t);
    const { far, application, relays, stop } = relayNodes(t);
    publish(far);
    stop('far');
    const since = performance.now();
    t.is(await relays.find(application, 'talk'), undefined);
    t.true(performance.now() - since < 6000);
  },
);

test.serial('a new owner is followed as soon as it is known, though the former one has not ended', async (t) => {
  virtualTime(t);
  const { far, application, relays, add, buried } = relayNodes(t);
  publish(far);
  const output = await watched(relays, application);
  const third = add('third');
  buried.add('far');
  const since = performance.now();
  const next = publish(third);
  await until('it is relayed from there', () => next.watched);
  t.true(performance.now() - since < 2000);
  t.false(output.closed);
});
