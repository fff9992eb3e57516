import test, { type ExecutionContext } from 'ava';
import { aac } from '../support/media/aac.ts';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { playOvt } from '../support/ovt/ovt.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const SCENE = { video: await h264({ seconds: 2, kbit: 200 }), audio: await aac(440) };

async function watch(t: ExecutionContext, node: Kiln, name: string): Promise<ViewerPeer> {
  const url = `http://127.0.0.1:${node.ports.http}/app/${name}?direction=whep`;
  return until(`${name} plays`, async () => {
    const peer = new ViewerPeer({ audio: false });
    t.teardown(() => peer.close());
    return peer.play(url).then(
      () => peer,
      () => {
        peer.close();
        return undefined;
      },
    );
  });
}

/** Frames come that were not there before. */
async function moves(peer: ViewerPeer, what: string): Promise<void> {
  const before = peer.frames().length;
  await until(what, () => peer.frames().length > before + 20);
}

const lines = (node: Kiln, name: string): string[] => node.log.split('\n').filter((line) => line.includes(`/${name}"`));
const begun = (node: Kiln, name: string): number =>
  lines(node, name).filter((line) => line.includes('"event":"stream.relayed"')).length;
const hasEnded = (node: Kiln, name: string, why: string): boolean =>
  lines(node, name).some((line) => line.includes(why));

async function publish(t: ExecutionContext, node: Kiln, name: string): Promise<MediaPublisher> {
  const publisher = await until(`${name} is published`, () =>
    MediaPublisher.start(node.ports.rtmp, name, [SCENE]).catch(() => undefined),
  );
  t.teardown(() => publisher.close());
  return publisher;
}

const shared = sharedNodes(['a', 'b', 'c']);

test('viewers of any node get a stream through one relay of their node, which ends with the last of them', async (t) => {
  const [a, b, c] = shared();
  await publish(t, a, 'talk');
  const first = await watch(t, b, 'talk');
  await moves(first, 'B shows a picture');
  const others = await Promise.all([
    watch(t, b, 'talk'),
    watch(t, b, 'talk'),
    watch(t, c, 'talk'),
    watch(t, a, 'talk'),
  ]);
  await Promise.all(others.map((peer, i) => moves(peer, `viewer ${i} has a picture`)));
  t.deepEqual(
    [a, b, c].map((node) => begun(node, 'talk')),
    [0, 1, 1],
  );
  const listed = await b.api<string[]>('/v1/vhosts/default/apps/app/streams');
  t.deepEqual(
    listed.body.response.filter((name) => name !== 'short'),
    ['talk'],
  );
  for (const peer of [first, ...others]) peer.close();
  await until('the relays have ended', () => [b, c].every((node) => hasEnded(node, 'talk', 'no viewers are left')));
  const again = await watch(t, b, 'talk');
  await moves(again, 'B shows a picture again');
  t.is(begun(b, 'talk'), 2);
});

long('an edge pulls over OVT from any node, and is counted where it came', async (t) => {
  const redis = await usedRedis(t);
  const options = { publishers: '<OVT/>' };
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => startNode(t, redis, id, options)))) as [Kiln, Kiln];
  await publish(t, a, 'wide');
  await until('its sound is encoded as well', async () => {
    const { body } = await a.api<Partial<StreamInfo>>('/v1/vhosts/default/apps/app/streams/wide');
    const codecs = body.response.outputs?.flatMap(({ tracks }) => tracks.map((track) => track.audio?.codec));
    return codecs?.includes('OPUS');
  });
  for (const [node, relays] of [
    [a, 0],
    [b, 1],
  ] as const) {
    const { client, recorder } = await until('it plays', () =>
      playOvt(`ovt://127.0.0.1:${node.ports.ovt}/app/wide?session=${relays}`).catch(() => undefined),
    );
    t.teardown(() => client.close());
    await until('both tracks come', () => recorder.of(0).length > 20 && recorder.of(1).length > 20);
    t.deepEqual(recorder.told[0]?.tracks.map(({ codec }) => codec).sort(), ['AAC', 'H264', 'ID3v2', 'OPUS']);
    t.is(begun(node, 'wide'), relays);
  }
  const sessions = await a.api<{ id: string }[]>('/v1/vhosts/default/apps/app/streams/wide/sessions');
  t.deepEqual(sessions.body.response.map((session) => (typeof session === 'string' ? session : session.id)).sort(), [
    '0',
    '1',
  ]);
});

long('a publisher moves: viewers on every node see it go on', async (t) => {
  const redis = await usedRedis(t);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id)))) as [Kiln, Kiln, Kiln];
  const before = await publish(t, a, 'tour');
  const viewers = await Promise.all([watch(t, b, 'tour'), watch(t, c, 'tour')]);
  await Promise.all(viewers.map((peer) => moves(peer, 'there is a picture')));
  before.close();
  await publish(t, c, 'tour');
  // C has the stream itself by now: its viewer stays on the relay
  await Promise.all(viewers.map((peer, i) => moves(peer, `viewer ${i} sees it go on`)));
  await a.stop();
  await Promise.all(viewers.map((peer) => moves(peer, 'it goes on without A')));
  t.deepEqual(
    [a, b, c].map((node) => begun(node, 'tour')),
    [0, 1, 1],
  );
});

long('the owner dies: viewers stay until the publisher is back elsewhere', async (t) => {
  const redis = await usedRedis(t);
  const [a, b, c] = (await Promise.all(['a', 'b', 'c'].map((id) => startNode(t, redis, id)))) as [Kiln, Kiln, Kiln];
  await publish(t, a, 'fall');
  const viewer = await watch(t, b, 'fall');
  await moves(viewer, 'there is a picture');
  a.signal('SIGKILL');
  await publish(t, c, 'fall');
  await moves(viewer, 'it goes on');
  t.is(begun(b, 'fall'), 1);
});

long('a stream that is deleted ends for the viewers of every node', async (t) => {
  const [a, b] = shared();
  await publish(t, a, 'short');
  const viewer = await watch(t, b, 'short');
  await moves(viewer, 'there is a picture');
  t.is((await b.api('/v1/vhosts/default/apps/app/streams/short', 'DELETE')).status, 200);
  // sooner than the half minute in which a publisher may come back
  await until('the relay has ended', () => hasEnded(b, 'short', 'the stream has ended'), 25_000);
});
