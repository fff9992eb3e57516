import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { standbyTask } from '../../../../src/channels/standby/kind.ts';
import { Slates } from '../../../../src/channels/standby/slates.ts';
import { Standbys } from '../../../../src/channels/standby/standbys.ts';
import { PublisherGrant } from '../../../../src/access/publisher-grant.ts';
import { Registry } from '../../../../src/core/registry.ts';
import type { Source } from '../../../../src/core/source.ts';
import { Tasks } from '../../../../src/tasks/tasks.ts';
import { createVhost } from '../../../support/api/api.ts';
import { aloneWith } from '../../../support/cluster/alone.ts';
import { videoPackets, videoTrack } from '../../../support/media/packets.ts';
import { until } from '../../../support/time/until.ts';

const RTMP: Source = { type: 'Rtmp', kind: 'rtmp' };
const REFUSING = { replace: false, maxConnections: 1, silence: 'continue', signal: undefined } as const;
const log = pino({ enabled: false });

async function open(t: ExecutionContext, standby: object | null = { enable: true, silenceTimeoutMs: 0 }) {
  const registry = new Registry();
  createVhost(registry, {
    ...{ name: 'default', host: { names: ['*'] } },
    applications: [{ name: 'app', type: 'live', ...(standby && { standby }) }],
  });
  const application = registry.vhost('default').application('app');
  const { cluster, names, calls } = await aloneWith(registry);
  const tasks = new Tasks({ cluster, registry, calls, log });
  // nothing can be encoded: what waits for a slate waits
  const never = new Promise<undefined>(() => undefined);
  const slates = new Slates({ folder: '/nowhere', base: '/nowhere', capabilities: () => never });
  const standbys = new Standbys({ registry, names, slates, tasks, isClustered: true, log });
  t.teardown(() => {
    standbys.close();
    registry.close('the test is over');
  });
  const publish = (source = RTMP) => standbys.publish(application, 'live', source, REFUSING);
  const defined = () => tasks.definitions.get(standbyTask(application, 'live'));
  return { registry, application, names, tasks, standbys, publish, defined };
}

async function live(publish: () => ReturnType<Standbys['publish']>) {
  const input = await publish();
  const track = videoTrack();
  input.setTracks([track]);
  for (const packet of videoPackets(track, { to: 1 })) input.write(packet);
  return input;
}

test('a second publisher is rejected while the first one is there, and admitted when it is away', async (t) => {
  const { application, publish } = await open(t);
  const first = await live(publish);
  await t.throwsAsync(publish(), { code: 'streamExists' });
  const stream = application.stream('live');
  first.close('the publisher left');
  t.false(stream?.closed);
  const second = await live(publish);
  t.is(application.stream('live'), stream, 'it is the same stream');
  t.false(second.closed);
});

test('an application without Standby has streams that end with their publishers', async (t) => {
  const { application, publish, defined } = await open(t, null);
  const input = await live(publish);
  t.is(application.stream('live'), input);
  input.close('the publisher left');
  t.is(application.stream('live'), undefined);
  t.is(defined(), undefined);
});

test('a publisher whose provider makes the output stream is not replaced by a slate', async (t) => {
  const { application, standbys } = await open(t);
  const input = await standbys.publish(application, 'live', RTMP, { ...REFUSING, isPassthrough: true });
  input.setTracks([videoTrack()]);
  t.is(application.stream('live'), input);
});

test('other nodes go on with a stream as long as it has not ended for good', async (t) => {
  const { application, publish, defined } = await open(t);
  const first = await live(publish);
  await until('it has a task', () => defined() !== undefined);
  first.close('the publisher left');
  t.truthy(defined());
  application.stream('live')?.end('it was deleted');
  await until('it has none', () => defined() === undefined);
  const second = await live(publish);
  t.false(second.closed);
});

test('the end of an application ends its slates and publishers', async (t) => {
  const { application, publish } = await open(t);
  const input = await live(publish);
  application.close('it was deleted');
  t.true(input.closed);
});

test('a node that drains or stops shows no slate, and ends those that are shown', async (t) => {
  const draining = await open(t);
  (await live(draining.publish)).close('the publisher left');
  t.truthy(draining.application.stream('live'));
  draining.registry.draining = true;
  t.is(draining.application.stream('live'), undefined);
  t.truthy(await until('it is defined', () => draining.defined()), 'another node goes on');
  const stopping = await open(t);
  const input = await live(stopping.publish);
  stopping.standbys.close();
  input.close('the publisher left');
  t.is(stopping.application.stream('live'), undefined);
});

test('a stream gets a standby by a task, and loses it', async (t) => {
  const { application, standbys, publish, defined } = await open(t, null);
  await standbys.start(application, 'live', { text: 'soon' });
  t.true(defined()?.persistent);
  await t.throwsAsync(standbys.start(application, 'live', {}), { code: 'standbyExists' });
  const first = await live(publish);
  first.close('the publisher left');
  t.truthy(application.stream('live'));
  await standbys.stop(application, 'live');
  t.is(application.stream('live'), undefined);
  await t.throwsAsync(standbys.stop(application, 'live'), { code: 'standbyNotFound' });
});

test('a slate that was stopped is not shown for a publisher that leaves later', async (t) => {
  const { application, standbys, publish } = await open(t);
  const first = await live(publish);
  await standbys.stop(application, 'live');
  t.false(first.closed);
  await standbys.start(application, 'live', {});
  first.close('the publisher left');
  t.truthy(application.stream('live'), 'it was started again');
});

test('admission of a publisher ends with it, and not with the stream', async (t) => {
  const { registry, application, standbys } = await open(t);
  const ends: string[] = [];
  const grant = new PublisherGrant({
    ...{ vhost: registry.vhost('default'), app: 'app', stream: 'live', names: standbys, signal: undefined },
    config: { maxConnection: 0, blockDuplicateStreamName: true } as never,
    grant: { limit: () => undefined, end: (reason: string) => void ends.push(reason) } as never,
    onRefused: () => undefined,
  });
  const input = await live(() => grant.publish(RTMP));
  input.close('the publisher left');
  t.deepEqual(ends, ['the publisher left']);
  t.truthy(application.stream('live'));
});
