import test, { type ExecutionContext } from 'ava';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import type { GopCache } from '../../../src/core/gop-cache.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { TaskOrigin } from '../../../src/tasks/definition.ts';
import { TaskDefinitions } from '../../../src/tasks/definitions.ts';
import { asJson } from '../../../src/lib/as-json.ts';
import { RecordStarts } from '../../../src/recording/starts.ts';
import { openAlone } from '../../support/cluster/cluster.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { audioPackets, audioTrack, interleaved, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { recordSpec } from '../../support/recording/recordings.ts';

const NAME = (id: string) => ({ kind: 'record', vhost: 'default', app: 'app', id });
const ORIGIN: TaskOrigin = { entry: 'e', node: 'n', output: 'stream', number: 1 };
const VIDEO = videoTrack();
const AUDIO = audioTrack();

async function open(t: ExecutionContext, file: object = {}) {
  const cluster = await openAlone();
  const registry = new Registry();
  addVhost(registry, { publishers: { file } as ApplicationConfig['publishers'] });
  const definitions = new TaskDefinitions(cluster.config);
  const starts = new RecordStarts(registry, definitions);
  t.teardown(async () => {
    registry.close('the test is over');
    starts.close();
    await cluster.close();
  });
  return {
    starts,
    define: (id: string, origin?: TaskOrigin, stream = 'stream') =>
      definitions.create(NAME(id), {
        spec: asJson(recordSpec({ stream: { name: stream, trackIds: [], variantNames: [] } })),
        persistent: true,
        stored: false,
        ...(origin && { origin }),
      }),
    publish: () => {
      const output = goLive(registry, 'app', 'stream', [VIDEO]);
      registry.vhost('default').application('app').announce(output);
      return output;
    },
  };
}

function timesOf(cache: GopCache | undefined): number[] | undefined {
  const times: number[] = [];
  cache?.replay(({ dts, track }) => times.push(Math.round((dts * 1000) / track.timebase.den)));
  return cache && times;
}

test('a recording that has waited for a stream gets its beginning, once', async (t) => {
  const { starts, define, publish } = await open(t);
  await define('before');
  await define('other', undefined, 'elsewhere');
  const output = publish();
  await define('after');
  const packets = videoPackets(VIDEO, { to: 3.5 });
  for (const packet of packets) output.write(packet);
  t.deepEqual(timesOf(starts.take(NAME('before'), output))?.length, packets.length);
  for (const id of ['before', 'after', 'other']) t.is(starts.take(NAME(id), output), undefined, id);
});

test('a recording that a stream map defines late has the start of the stream, too', async (t) => {
  const { starts, define, publish } = await open(t, { streamMap: { enable: true, path: 'x' } });
  const output = publish();
  for (const packet of videoPackets(VIDEO, { to: 1 })) output.write(packet);
  await define('mapped', ORIGIN);
  await define('after');
  t.is(timesOf(starts.take(NAME('mapped'), output))?.[0], 0);
  t.is(starts.take(NAME('mapped'), output), undefined);
  t.is(starts.take(NAME('after'), output), undefined);
});

test('no packets are kept where no recording waits', async (t) => {
  const { starts, define, publish } = await open(t, { streamMap: { enable: false, path: 'x' } });
  await define('other', undefined, 'elsewhere');
  const output = publish();
  t.is(output.readers, 0);
  await define('mapped', ORIGIN);
  t.is(starts.take(NAME('mapped'), output), undefined);
});

test('tracks that come later leave the beginning as it is', async (t) => {
  const { starts, define, publish } = await open(t);
  await define('r');
  const output = publish();
  const [first, second] = [videoPackets(VIDEO, { to: 0.5 }), videoPackets(VIDEO, { from: 0.5, to: 1 })];
  for (const packet of first) output.write(packet);
  output.setTracks([VIDEO, AUDIO]);
  for (const packet of interleaved(second, audioPackets(AUDIO, { from: 0.5, to: 1 }))) output.write(packet);
  const cache = starts.take(NAME('r'), output);
  t.is(timesOf(cache)?.[0], 0);
});

test('a stream beyond the limit is kept from its newest key frame on', async (t) => {
  const { starts, define, publish } = await open(t);
  await define('r');
  const output = publish();
  for (const packet of videoPackets(VIDEO, { to: 9.5, gop: 60, bytes: 40_000 })) output.write(packet);
  const [from = 0] = timesOf(starts.take(NAME('r'), output)) ?? [];
  t.true(from > 0 && from % 2000 === 0, `from ${from} ms`);
});
