import test from 'ava';
import type { Kiln } from '../support/server/kiln.ts';
import { MovingPublisher } from '../support/rtmp/moving-publisher.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { OvtViewer } from '../support/ovt/ovt-viewer.ts';
import { PictureClient } from '../support/rtmp/picture-client.ts';
import { until } from '../support/time/until.ts';

/** Packets after which a stream plays. */
const PLAYS = 10;

test('a publisher that can be asked to reconnect leaves a draining node, and viewers elsewhere play on', async (t) => {
  t.timeout(300_000);
  const redis = await usedRedis(t);
  const options = { ovt: true, nodeXml: '<DrainTimeout>3600000</DrainTimeout>' };
  const start = (id: string): Promise<Kiln> => startNode(t, redis, id, options);
  const [first, ...others] = (await Promise.all(['a', 'b', 'c'].map(start))) as [Kiln, Kiln, Kiln];
  // a balancer that has not noticed yet that the first one takes nobody any more
  const choices = [first, first, others[0]];
  const publisher = await MovingPublisher.start('live', () => (choices.shift() ?? first).ports.rtmp);
  t.teardown(() => publisher.close());
  await Promise.all(others.map((node) => node.liveStream('live')));
  const viewers = await Promise.all(others.map((node) => OvtViewer.play(t, node.ovtUrl('live'))));
  await until('all play', () => viewers.every(({ arrivals }) => arrivals.length > PLAYS));
  await t.throwsAsync(PictureClient.publish(others[0] as Kiln, 'live'), { message: /already exist/ });
  const stays = await PictureClient.publish(first, 'stays');

  const drained = performance.now();
  first.signal('SIGTERM');
  await until('the publisher has moved', () => publisher.moves === 1);
  const moved = performance.now();
  await until('all play', () => viewers.every((viewer) => viewer.since(moved) > PLAYS));
  const gaps = viewers.map((viewer) => Math.round(viewer.gapSince(drained)));
  t.log(`moved after ${Math.round(moved - drained)} ms; viewers were without media for ${gaps.join(' and ')} ms`);
  t.deepEqual(
    viewers.map(({ ended }) => ended),
    [false, false],
  );
  t.is(publisher.moves, 1);
  t.false(publisher.client.socket.closed);
  t.true(first.running && !stays.ended, 'who cannot be asked stays');
  stays.close();
  t.is(await first.exited(), 0);
  t.false(publisher.client.socket.closed);
});
