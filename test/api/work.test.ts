import test, { type ExecutionContext } from 'ava';
import type { Registry } from '../../src/core/registry.ts';
import type { InputStream } from '../../src/core/input-stream.ts';
import { openApi, sampleRegistry } from '../support/api/api.ts';
import { videoTrack } from '../support/media/packets.ts';

const APPLICATION = '/v1/vhosts/default/apps/app';
const READ = ['name', 'tracks', 'outputs', 'counters', 'source', 'createdTime'] as const;

/** Makes streams live, each with an output, and counts from then on how often any of them is looked at. */
function populate(registry: Registry, count: number) {
  const looked = new Map<string, number>();
  const application = registry.vhost('default').application('app');
  for (let i = 0; i < count; i++) {
    const name = `stream${i}`;
    const input = application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
    input.setTracks([videoTrack()]);
    application.addOutput(input, name).setTracks([videoTrack()]);
    for (const key of READ) watch(input, key, () => looked.set(name, (looked.get(name) ?? 0) + 1));
  }
  return looked;
}

function watch(input: InputStream, key: (typeof READ)[number], look: () => void): void {
  const get = (): unknown => {
    look();
    return key in own ? own[key as keyof typeof own] : Reflect.get(Object.getPrototypeOf(input) as object, key, input);
  };
  const own = Object.hasOwn(input, key) ? { [key]: input[key] } : {};
  Object.defineProperty(input, key, { get, configurable: true });
}

/** The API of a server whose queues nobody looks at once a second. */
async function openUnwatched(t: ExecutionContext, registry: Registry) {
  const { call, options } = await openApi(t, {}, registry);
  options.queues.close();
  return call;
}

const ofOne = [
  `${APPLICATION}/streams/stream7`,
  `${APPLICATION}/streams/stream7/sessions`,
  '/v1/stats/current/vhosts/default/apps/app/streams/stream7',
  '/v2/stats/current/vhosts/default/apps/app/streams/stream7',
  '/v1/stats/current/vhosts/default/apps/app',
  '/v2/stats/current/vhosts/default',
  '/v1/stats/current',
];

for (const path of ofOne) {
  test(`GET ${path} looks at no other stream, however many there are`, async (t) => {
    const work = await Promise.all(
      [10, 1000].map(async (count) => {
        const registry = sampleRegistry();
        const call = await openUnwatched(t, registry);
        const looked = populate(registry, count);
        t.is((await call('GET', path)).status, 200);
        return [...looked];
      }),
    );
    t.deepEqual(work[1], work[0]);
    t.true(work.flat().every(([name]) => name === 'stream7'));
  });
}

test('the list of streams looks at each once', async (t) => {
  const registry = sampleRegistry();
  const call = await openUnwatched(t, registry);
  const looked = populate(registry, 1000);
  t.is(((await call('GET', `${APPLICATION}/streams`)).body?.response as string[]).length, 1000);
  t.is(looked.size, 1000);
  // its tracks, to see that it is live, and its name
  t.deepEqual([...new Set(looked.values())], [2]);
});
