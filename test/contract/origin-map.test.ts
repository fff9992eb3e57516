import test from 'ava';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import type { VirtualHostConfig } from '../../src/config/model.ts';
import { Registry } from '../../src/core/registry.ts';
import { OriginMapStore } from '../../src/origin-map/origin-map-store.ts';
import { OriginMaps } from '../../src/origin-map/origin-maps.ts';
import { goLive, VIDEO } from '../support/server/live.ts';
import { RedisServer } from '../support/redis/redis.ts';
import { until } from '../support/time/until.ts';

function open(redis: { readonly port: number }, auth?: string) {
  const registry = new Registry();
  const add = (name: string): void =>
    void registry.createVhost(
      {
        name,
        host: { names: [name] },
        originMapStore: { redisServer: { host: `127.0.0.1:${redis.port}`, auth }, originHostName: '::1' },
        applications: [{ name: 'app', type: 'live', publishers: { ovt: {} } }],
      } as unknown as VirtualHostConfig,
      true,
    );
  add('v');
  const fromStore = new WeakSet<object>();
  const log = pino({ level: 'silent' });
  const maps = new OriginMaps({ registry, ovtPort: 9000, isFromStore: (input) => fromStore.has(input), log });
  return { registry, maps, fromStore, application: registry.vhost('v').application('app') };
}

type StoreConfig = NonNullable<VirtualHostConfig['originMapStore']>;

/** How often Redis was given each command. */
async function commands(raw: Redis): Promise<Record<string, number>> {
  return Object.fromEntries(
    [...(await raw.info('commandstats')).matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, calls]) => [
      name,
      Number(calls),
    ]),
  );
}

const URL = 'ovt://[::1]:9000/app/s';

test('a stream is in the origin map as long as it exists, unless another entry is there or it came from there itself', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis({ port: redis.port });
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const { registry, maps, application, fromStore } = open(redis);
  t.teardown(() => maps.close());
  const live = (name: string, prepare = (_input: object): void => {}) => {
    const output = goLive(registry, 'app', name);
    prepare(output.input);
    application.announce(output);
    return output;
  };
  await raw.set('app/taken', 'ovt://other/app/taken');
  const [stream, taken] = [live('s'), live('taken')];
  live('pulled', (input) => fromStore.add(input));
  const relay = application.relay('far', 'far', { type: 'Ovt', kind: 'ovt' });
  relay.setTracks([VIDEO]);
  application.announce(relay);
  await until('it is told', async () => (await raw.get('app/s')) === URL);
  t.deepEqual((await raw.keys('*')).sort(), ['app/s', 'app/taken']);
  t.is(await maps.find(application.vhost, 'app', 's'), undefined, 'nobody pulls from himself');
  t.is(await maps.find(application.vhost, 'app', 'taken'), 'ovt://other/app/taken');
  t.is(await maps.find(application.vhost, 'app', 'none'), undefined);
  await raw.del('app/taken');
  await until('the candidate is next', async () => (await raw.get('app/taken')) === URL.replace(/s$/, 'taken'));
  await raw.set('app/s', 'ovt://thief/app/s');
  stream.input.close('over');
  taken.input.close('over');
  await until('it is taken back', async () => (await raw.get('app/taken')) === null);
  t.is(await raw.get('app/s'), 'ovt://thief/app/s', 'what another tells is left alone');
});

test('a connection ends with its virtual host, comes back after Redis did, and gives up on a wrong password', async (t) => {
  const redis = await RedisServer.start(t, { args: ['--requirepass', 'right'] });
  const raw = new Redis({ port: redis.port, password: 'right' });
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const clients = async (): Promise<number> => ((await raw.client('LIST')) as string).trim().split('\n').length;
  const wrong = open(redis, 'wrong');
  t.teardown(() => wrong.maps.close());
  await raw.set('app/s', 'ovt://other/app/s');
  t.is(await wrong.maps.find(wrong.application.vhost, 'app', 's'), undefined);
  await wrong.maps.close();
  const { registry, maps, application } = open(redis, 'right');
  t.teardown(() => maps.close());
  t.is(await maps.find(application.vhost, 'app', 's'), 'ovt://other/app/s');
  await redis.kill();
  t.is(await maps.find(application.vhost, 'app', 's'), undefined);
  await redis.run();
  await until('it is back', () => raw.set('app/s', 'ovt://again/app/s').catch(() => false));
  await until('it answers again', async () => (await maps.find(application.vhost, 'app', 's')) === 'ovt://again/app/s');
  const before = await clients();
  registry.deleteVhost('v', 'the test is over');
  await until('it is gone', async () => (await clients()) === before - 1);
});

test('a thousand questions at once for one stream are one', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis({ port: redis.port });
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const { maps, application } = open(redis);
  t.teardown(() => maps.close());
  await maps.find(application.vhost, 'app', 'warm');
  const gets = async (): Promise<number> =>
    Number(/cmdstat_get:calls=(\d+)/.exec(await raw.info('commandstats'))?.[1] ?? 0);
  const before = await gets();
  await Promise.all(Array.from({ length: 1000 }, () => maps.find(application.vhost, 'app', 'none')));
  t.is(await gets(), before + 1);
});

test('thousands of streams are written to the origin map with few commands, and candidates with one for many', async (t) => {
  const redis = await RedisServer.start(t);
  const raw = new Redis({ port: redis.port });
  raw.on('error', () => {});
  t.teardown(() => raw.disconnect());
  const stores = [1, 2].map(
    () =>
      new OriginMapStore(
        { redisServer: { host: `127.0.0.1:${redis.port}` }, originHostName: 'h' } as StoreConfig,
        pino({ level: 'silent' }),
      ),
  );
  t.teardown(() => Promise.all(stores.map((store) => store.close())));
  const [one, two] = stores as [OriginMapStore, OriginMapStore];
  const COUNT = 5000;
  const undos = Array.from({ length: COUNT }, (_, n) => one.announce(`app/${n}`, 'ovt://one'));
  await until('all are told', async () => (await raw.dbsize()) === COUNT);
  await until('and known to be', async () => (await commands(raw)).set === COUNT);
  await raw.config('RESETSTAT');
  Array.from({ length: COUNT }, (_, n) => two.announce(`app/${n}`, 'ovt://two'));
  await until('they are refreshed', async () => ((await commands(raw)).expire ?? 0) >= 2 * COUNT);
  const { mget = 0, eval: evals = 0, set = 0 } = await commands(raw);
  t.is(set, 0, 'nothing is written that is there');
  t.true(evals >= 50 && evals < 200, `${evals}`);
  t.true(mget < 1000, `${mget}`);
  t.is(await raw.get('app/7'), 'ovt://one');
  await raw.set('app/7', 'ovt://thief');
  await raw.lpush('app/list', 'no string');
  for (const undo of undos) undo();
  await until(
    'the other tells of all',
    async () =>
      (await raw.mget(Array.from({ length: COUNT }, (_, n) => `app/${n}`))).filter((value) => value === 'ovt://two')
        .length ===
      COUNT - 1,
  );
  t.is(await raw.get('app/7'), 'ovt://thief');
  two.announce('app/list', 'ovt://two');
  await raw.flushdb();
  await until('what Redis lost is told again', async () => (await raw.dbsize()) === COUNT + 1);
});
