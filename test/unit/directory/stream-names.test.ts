import test from 'ava';
import { pino } from 'pino';
import type { OwnerChange } from '#cluster';
import { Registry } from '../../../src/core/registry.ts';
import type { Source } from '../../../src/core/source.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import { readMeta, streamKey } from '../../../src/directory/stream-key.ts';
import { StreamNames } from '../../../src/directory/stream-names.ts';
import { aloneWith } from '../../support/cluster/alone.ts';
import { createVhost } from '../../support/api/api.ts';
import { videoTrack } from '../../support/media/packets.ts';
import { until } from '../../support/time/until.ts';

const SOURCE: Source = { type: 'Rtmp', kind: 'rtmp' };
const REFUSING = { replace: false, maxConnections: 0, silence: 'continue' } as const;
const REPLACING = { ...REFUSING, replace: true } as const;
const NAME = { vhost: 'default', app: 'app', stream: 'live' };

async function open() {
  const registry = new Registry();
  createVhost(registry, { name: 'default', host: { names: ['*'] }, applications: [{ name: 'app', type: 'live' }] });
  const application = registry.vhost('default').application('app');
  const alone = await aloneWith(registry);
  const meta = async () => readMeta((await alone.cluster.ownerOf(streamKey(NAME)))?.meta);
  return { ...alone, registry, application, meta };
}

test('a name is claimed as long as its stream is there, and lists its outputs', async (t) => {
  const { application, names, meta } = await open();
  t.is(await meta(), undefined);
  const input = await names.publish(application, 'live', SOURCE, REFUSING);
  t.like(await meta(), { live: false, outputs: [] });
  input.setTracks([videoTrack()]);
  const output = application.addOutput(input, 'out');
  output.setTracks([videoTrack()]);
  application.announce(output);
  t.like(await until('it is told', async () => ((await meta())?.outputs.length === 1 ? meta() : undefined)), {
    live: true,
    outputs: ['out'],
  });
  output.close('no more');
  await until('it is told', async () => (await meta())?.outputs.length === 0);
  t.true(names.isCertain(input));
  input.close('the publisher left');
  t.is(await meta(), undefined);
});

test('a name that is taken is refused, or taken over', async (t) => {
  const { application, names } = await open();
  const first = await names.publish(application, 'live', SOURCE, REFUSING);
  await t.throwsAsync(names.publish(application, 'live', SOURCE, REFUSING), { message: /already exists/ });
  t.false(first.closed);
  const second = await names.publish(application, 'live', SOURCE, REPLACING);
  t.true(first.closed);
  t.true(first.continuity.over, 'it goes on elsewhere');
  second.close('the publisher left');
  const third = await names.publish(application, 'live', SOURCE, REFUSING);
  t.false(third.closed);
});

test('other nodes know whether a stream may be taken over', async (t) => {
  const { application, names, meta } = await open();
  const first = await names.publish(application, 'live', SOURCE, REFUSING);
  first.handsOver = true;
  await until('it is told', async () => (await meta())?.handsOver === true);
  first.handsOver = false;
  await until('it is told', async () => (await meta())?.handsOver === undefined);
  await t.throwsAsync(names.publish(application, 'live', SOURCE, REFUSING), { message: /already exists/ });
});

for (const [what, handsOver, isFirst] of [
  ['taken over where it is handed over', true, true],
  ['refused where another has taken it over meanwhile', true, false],
  ['refused', false, true],
] as const)
  test(`a name that another node has is ${what}`, async (t) => {
    const { application, cluster, registry } = await open();
    const log = pino({ level: 'silent' });
    const meta = { live: true, created: 1, generation: 0, outputs: ['live'] };
    const owner = { id: 'b', incarnation: 'b1', fence: 1, meta: { ...meta, ...(handsOver && { handsOver }) } };
    const asked: unknown[] = [];
    const names = new StreamNames({
      registry,
      log,
      changes: new StreamChanges(registry, { listen: () => () => {} }),
      cluster: {
        self: cluster.self,
        config: cluster.config,
        lives: async () => true,
        claim: async (key, own, options) => {
          asked.push(options.take);
          if (options.take === false) return { owner };
          return isFirst ? cluster.claim(key, own, options) : { owner: { id: 'c', incarnation: 'c1', fence: 2, meta } };
        },
      },
    });
    t.teardown(() => names.close());
    const publishing = names.publish(application, 'live', SOURCE, REFUSING);
    if (handsOver && isFirst) t.false((await publishing).closed);
    else await t.throwsAsync(publishing, { message: /already exists/ });
    t.deepEqual(asked, handsOver ? [false, owner] : [false]);
  });

test('a publication that is refused leaves no claim behind', async (t) => {
  const { application, names, meta, registry } = await open();
  registry.draining = true;
  await t.throwsAsync(names.publish(application, 'live', SOURCE, REFUSING), { message: /draining/ });
  registry.draining = false;
  const publishing = names.publish(application, 'live', SOURCE, REFUSING);
  application.close('deleted meanwhile');
  await t.throwsAsync(publishing, { message: /Could not find the application/ });
  t.is(await meta(), undefined);
});

test('a stream inherits what the one before it kept, unless that was ended on purpose', async (t) => {
  const { application, names } = await open();
  const first = await names.publish(application, 'live', SOURCE, REFUSING);
  t.is(first.continuity.inherited('module'), undefined);
  first.continuity.keep('module', { number: 1 });
  first.continuity.keep('module', { number: 2 });
  first.continuity.keep('other', 'text');
  first.close('the publisher left');
  const second = await names.publish(application, 'live', SOURCE, REFUSING);
  t.deepEqual(second.continuity.inherited('module'), { number: 2 });
  t.is(second.continuity.inherited('other'), 'text');
  second.continuity.keep('module', { number: 3 });
  second.end('deleted');
  const third = await names.publish(application, 'live', SOURCE, REFUSING);
  t.is(third.continuity.inherited('module'), undefined);
});

test('a stream that ends before it kept anything leaves what it inherited to the next', async (t) => {
  const { application, names, meta } = await open();
  const first = await names.publish(application, 'live', SOURCE, REFUSING);
  first.continuity.keep('module', { number: 1 });
  first.continuity.keep('other', 'text');
  t.deepEqual(
    Object.keys((await meta()) ?? {}).sort(),
    ['created', 'generation', 'live', 'outputs', 'starting'],
    'only who continues it hears of it',
  );
  first.close('the publisher left');
  const second = await names.publish(application, 'live', SOURCE, REFUSING);
  second.setTracks([videoTrack()]);
  second.close('it left before its first segment');
  const third = await names.publish(application, 'live', SOURCE, REFUSING);
  t.deepEqual(third.continuity.inherited('module'), { number: 1 });
  third.continuity.keep('module', { number: 2 });
  third.close('it left');
  const fourth = await names.publish(application, 'live', SOURCE, REFUSING);
  t.deepEqual(
    [...fourth.continuity.kept],
    [
      ['module', { number: 2 }],
      ['other', 'text'],
    ],
  );
});

test('the directory knows what other nodes publish, and whose it is', async (t) => {
  const { application, names, directory, registry } = await open();
  const input = await names.publish(application, 'live', SOURCE, REFUSING);
  t.like(await directory.ownerOf(NAME), { isSelf: true, live: false });
  input.setTracks([videoTrack()]);
  await until('it is live', async () => (await directory.ownerOf(NAME))?.live);
  t.is(await directory.locate(application, 'live'), undefined, 'what is here is nowhere else');
  t.deepEqual(directory.elsewhere(application), []);
  t.deepEqual([...directory.remoteOutputs('default')], []);
  await until('it is heard of', () => directory.inUse('default', 'app'));
  t.is(await directory.ownerOf({ ...NAME, stream: 'none' }), undefined);
  registry.close('the test is over');
  await until('it is forgotten', () => !directory.inUse('default', 'app'));
});

test('stream entries of a node of another version are skipped', async (t) => {
  const { cluster, directory, application } = await open();
  const heard: OwnerChange[] = [];
  cluster.watch('stream', (changes) => heard.push(...changes));
  for (const [stream, meta] of [
    ['text', 'text'],
    ['list', []],
    ['half', { live: true }],
  ] as const) {
    await cluster.claim(streamKey({ ...NAME, stream }), meta, { silence: 'stop' });
  }
  await until('it was heard', () => heard.length === 3);
  t.is(await directory.locate(application, 'text'), undefined);
  t.is(await directory.ownerOf({ ...NAME, stream: 'half' }), undefined);
  t.deepEqual(directory.elsewhere(application), []);
});

test('a name whose publisher is away is free for others', async (t) => {
  const { application, names, meta } = await open();
  const first = await names.publish(application, 'live', SOURCE, { ...REFUSING, hasStandby: true });
  first.isVacant = true;
  await until('it is told', async () => (await meta())?.handsOver === true);
  const second = await names.publish(application, 'live', SOURCE, REFUSING);
  t.true(first.closed && first.continuity.taken);
  second.close('the publisher left');
});
