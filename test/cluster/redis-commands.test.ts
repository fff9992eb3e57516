import { long } from '../support/runner/long.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { RedisMonitor, type Counts } from '../support/redis/redis-monitor.ts';
import { until } from '../support/time/until.ts';

const APP = '/v1/vhosts/default/apps/app';
const CALLS = 20;
/** By which a count may be off: what a beat finds changed is pulled, too. */
const SLACK = 4;

const total = (counts: Counts): number => [...counts.values()].reduce((sum, count) => sum + count, 0);
const of = (counts: Counts, name: string): number => counts.get(name) ?? 0;

long(
  'nodes ask Redis once for a call of the management API, whichever node has the stream, and little beside that',
  async (t) => {
    const redis = await usedRedis(t);
    const [a, b] = await Promise.all([startNode(t, redis, 'a'), startNode(t, redis, 'b')]);
    await untilStates(b, { a: 'ready', b: 'ready' });
    // a new Redis takes the first write when it is open, which all nodes have to hear of
    const first = { name: 'first', host: { names: ['first.example.com'] } };
    t.is((await a.api('/v1/vhosts', 'POST', [first])).status, 200);
    await until('b has it, too', async () => (await b.api<string[]>('/v1/vhosts')).body.response.includes('first'));
    const monitor = await RedisMonitor.open(t, redis);
    const untilBeats = (beats: number): Promise<Counts> =>
      monitor.during((counts) => until(`${beats} beats`, () => of(counts, 'beat') >= beats));

    // nothing else is asked as often when there is nothing to do
    const idle = await untilBeats(30);
    t.log('idle', Object.fromEntries(idle));
    t.true(total(idle) <= 1.6 * of(idle, 'beat') + SLACK);
    t.true(of(idle, 'confirm') <= SLACK);
    t.is(of(idle, 'pull'), 0);

    const publisher = await PictureClient.publish(a, 'name');
    t.teardown(() => publisher.close());
    await b.liveStream('name');
    const live = await untilBeats(20);
    t.log('with a stream', Object.fromEntries(live));
    t.true(total(live) <= 3 * of(live, 'beat') + SLACK);
    t.true(of(live, 'pull') <= SLACK);

    const calls: [path: string, pulls: number][] = [
      [`${APP}/streams/name`, 1],
      [`${APP}/streams`, 1],
      [`${APP}/streams/none`, 1],
      [`${APP}/streams/name/sessions`, 1],
      ['/v1/stats/current/vhosts/default/apps/app/streams/name', 1],
      ['/v1/vhosts', 1],
      ['/v2/internals/codecs', 1],
    ];
    for (const [path, pulls] of calls) {
      const counts = await monitor.during(async () => {
        for (let call = 0; call < CALLS; call++) await b.api(path);
      });
      t.log(`${CALLS} GET ${path}`, Object.fromEntries(counts));
      t.true(of(counts, 'pull') >= CALLS, path);
      t.true(of(counts, 'pull') <= pulls * CALLS + SLACK, `${path}: ${of(counts, 'pull')} pulls`);
    }

    const creations = await monitor.during(async () => {
      for (let n = 0; n < CALLS; n++) {
        const { status } = await b.api('/v1/vhosts', 'POST', [
          { name: `v${n}`, host: { names: [`v${n}.example.com`] } },
        ]);
        t.is(status, 200);
      }
    });
    t.log(`${CALLS} creations`, Object.fromEntries(creations));
    // before it, under the lock, after it, and on each node that hears of it
    t.true(of(creations, 'pull') <= 5 * CALLS + SLACK);
    t.is(of(creations, 'write'), CALLS);
  },
);
