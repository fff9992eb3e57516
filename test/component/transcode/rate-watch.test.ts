import { mock } from 'node:test';
import test from 'ava';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import { createLogger } from '../../../src/log/log.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { attachOutputs } from '../../../src/transcode/outputs.ts';
import { raisedRate } from '../../../src/transcode/rate-watch.ts';
import { videoTrack } from '../../support/media/packets.ts';
import { until } from '../../support/time/until.ts';
import { RTMP, Sink, vhostConfig } from '../../unit/core/support.ts';
import { looped, makeClip, secondsOf, videoEncoding } from '../../unit/transcode/sources.ts';

const log = createLogger('silent');
const EVERY_MS = 5000;

test('the expected frame rate is raised where more frames come, never lowered, and not where the configuration decides', (t) => {
  const from = videoTrack({ framerate: 30 });
  const rates = (shape: object, measured: number) =>
    raisedRate(from, videoEncoding({ expectedFramerate: 30, ...shape }), measured).expectedFramerate;
  t.is(rates({}, 60), 60);
  t.is(rates({}, 59.9401), 59.94);
  t.is(rates({}, 33), 30);
  t.is(rates({}, 10), 30);
  t.is(rates({ framerate: 30 }, 60), 60);
  t.is(rates({ framerate: 15, expectedFramerate: 15 }, 60), 15);
  t.is(rates({ skipFrames: 1, expectedFramerate: 15 }, 60), 30);
  const encoding = videoEncoding({ expectedFramerate: 30 });
  t.is(raisedRate(from, encoding, 31), encoding);
});

test.serial('a source of twice the declared frame rate does not get twice the bitrate', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.teardown(() => mock.timers.reset());
  const source = await makeClip({ width: 160, height: 90, rate: 60 });
  const registry = new Registry();
  const sink = new Sink();
  registry.on('input', (input, application) =>
    attachOutputs(input, application, { log, inventory: new CodecInventory({ log }), folder: '.' }),
  );
  registry.on('output', (output) => void output.read(sink));
  const video = { name: 'v', codec: 'h264', modules: 'x264', bitrate: 100_000 };
  const outputProfile = [{ name: 'p', outputStreamName: 'o', encodes: { videos: [video] } }];
  const applications = [
    { name: 'app', type: 'live', providers: {}, publishers: {}, outputProfiles: { outputProfile } },
  ];
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications }), true);
  const input = registry
    .vhost('default')
    .application('app')
    .publish('live', RTMP, { replace: true, maxConnections: 0 });
  t.teardown(() => input.close('the test is over'));
  const track = { ...source.video, framerate: 30 };
  const packets = [...looped(source, 4)]
    .filter((packet) => packet.track === source.video)
    .map((packet) => ({ ...packet, track }));
  input.setTracks([track]);
  const feed = async (to: number) => {
    for (const packet of packets) if (secondsOf(packet) >= to - 4 && secondsOf(packet) < to) input.write(packet);
    await until('it is out', () => secondsOf(sink.packets.at(-1) ?? (packets[0] as Packet)) > to - 0.1);
  };
  const rate = (to: number) =>
    sink.packets.reduce(
      (bits, packet) => (secondsOf(packet) >= to - 3 && secondsOf(packet) < to ? bits + packet.data.length * 8 : bits),
      0,
    ) / 3;
  await feed(4);
  t.true(rate(4) > 170_000, String(rate(4)));
  mock.timers.tick(EVERY_MS);
  await feed(8);
  mock.timers.tick(EVERY_MS);
  await feed(12);
  t.true(rate(12) < 130_000 && rate(12) > 70_000, String(rate(12)));
  const fed = packets.filter((packet) => secondsOf(packet) < 12);
  await until('the last one is out', () => sink.packets.length >= fed.length);
  t.deepEqual(
    sink.packets.map(({ pts }) => pts),
    fed.map(({ pts }) => pts),
    'every frame is there once',
  );
});
