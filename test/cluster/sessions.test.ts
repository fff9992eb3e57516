import test, { type ExecutionContext } from 'ava';
import { MessageType } from '../../src/protocols/rtmp/message.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { aac } from '../support/media/aac.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { sharedNodes } from '../support/server/shared-nodes.ts';
import { H264_VIDEO, offerOf } from '../support/webrtc/offers.ts';
import { playOvt } from '../support/ovt/ovt.ts';
import { urisOf } from '../support/hls/playlist-uris.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const SCENE = {
  video: await h264({ width: 160, height: 90, fps: 15, gop: 15, seconds: 2, kbit: 100 }),
  audio: await aac(440),
};
const OFFER = offerOf([H264_VIDEO]);

type Nodes = readonly [a: Kiln, b: Kiln, c: Kiln];

const shared = sharedNodes(['a', 'b', 'c'], {
  publishers: '<OVT/>',
  rtmpPlay: true,
  flv: true,
  // a player that is silent for three segments has gone
  llhls: '<SegmentDuration>5</SegmentDuration><ChunkDuration>0.5</ChunkDuration>',
});

/** What is done with a stream of that name and its sessions. */
function streamOf(name: string) {
  const sessions = `/v1/vhosts/default/apps/app/streams/${name}/sessions`;

  /** Offers to a node, as a viewer who never connects: listed all the same for half a minute. */
  const whep = async (node: Kiln, session?: string): Promise<Response> => {
    const query = session === undefined ? '' : `&session=${session}`;
    const headers = { 'content-type': 'application/sdp' };
    return fetch(node.httpUrl(`/app/${name}?direction=whep${query}`), { method: 'POST', headers, body: OFFER });
  };

  return {
    sessions,
    whep,

    /** Publishes to a node as soon as that takes it, and waits until viewers of all nodes get it. */
    publish: async (t: ExecutionContext, node: Kiln, nodes: Nodes): Promise<MediaPublisher> => {
      const publisher = await until('the node takes the stream', () =>
        MediaPublisher.start(node.ports.rtmp, name, [SCENE]).catch(() => undefined),
      );
      t.teardown(() => publisher.close());
      for (const one of nodes) await until('it can be watched', async () => (await whep(one)).status === 201);
      return publisher;
    },

    statuses: async (nodes: readonly Kiln[], session: string): Promise<number[]> => {
      const answers: number[] = [];
      for (const node of nodes) answers.push((await whep(node, session)).status);
      return answers;
    },

    /** Asks for the master playlist under the name of a session. */
    llhls: (node: Kiln, session: string) => fetch(node.httpUrl(`/app/${name}/llhls.m3u8?session=${session}`)),

    /** Sessions that are named, as a node lists them. */
    named: async (node: Kiln): Promise<string[]> => {
      const { body } = await node.api<string[]>(sessions);
      return body.response.filter((id) => id.length < 36).sort();
    },

    kick: async (node: Kiln, session: string) => (await node.api(`${sessions}/${session}`, 'DELETE')).status,
  };
}

test.serial(
  'a name is one session of its stream on all nodes, and a viewer that any of them kicks stays out of all',
  async (t) => {
    const nodes = shared();
    const { publish, whep, statuses, named, kick } = streamOf('names');
    const [a, b, c] = nodes;
    const publisher = await publish(t, a, nodes);
    t.is((await whep(b, 'first')).status, 201);
    t.deepEqual(await statuses(nodes, 'first'), [409, 409, 409]);
    t.is((await whep(a, 'second')).status, 201);
    t.deepEqual(await statuses(nodes, 'second'), [409, 409, 409]);
    for (const name of ['r0', 'r1', 'r2']) {
      const both = await Promise.all([whep(b, name), whep(c, name)]);
      t.deepEqual(both.map(({ status }) => status).sort(), [201, 409]);
    }
    t.deepEqual(await named(c), ['first', 'r0', 'r1', 'r2', 'second']);

    t.is(await kick(c, 'first'), 200);
    t.deepEqual(await statuses(nodes, 'first'), [403, 403, 403]);
    t.is(await kick(b, 'second'), 200);
    t.deepEqual(await statuses(nodes, 'second'), [403, 403, 403]);
    t.deepEqual(await named(a), ['r0', 'r1', 'r2']);
    t.is(await kick(b, 'first'), 404);
    t.deepEqual(await statuses(nodes, 'first'), [403, 403, 403], 'who is gone stays out');
    t.is(await kick(b, 'nobody'), 404);
    t.is((await whep(c, 'nobody')).status, 201, 'who was not there is not kept out');

    publisher.close();
    await publish(t, b, nodes);
    t.deepEqual(await statuses(nodes, 'first'), [403, 403, 403], 'nor does the publisher bring anybody back');
  },
);

test.serial('an RTMP player plays from a node that does not own the stream, and any node ends it', async (t) => {
  const nodes = shared();
  const { publish, whep, kick } = streamOf('rtmp');
  const [a, b, c] = nodes;
  await publish(t, a, nodes);
  const play = async (node: Kiln): Promise<[RtmpClient, string | undefined]> => {
    const client = await RtmpClient.connect({ port: node.ports.rtmp, properties: {} });
    t.teardown(() => client.close());
    return [client, (await client.play('rtmp?session=over-rtmp')).at(-1)];
  };
  const [client, code] = await play(b);
  t.is(code, 'NetStream.Play.Start');
  await client.until('media', () => client.of(MessageType.Video).length > 20);
  t.is((await whep(c, 'over-rtmp')).status, 409);
  t.is(await kick(c, 'over-rtmp'), 200);
  await client.ended();
  t.is((await play(a))[1], 'NetStream.Play.Failed', 'it stays out of all nodes');
});

test.serial(
  'a viewer of FLV over HTTP plays from a node that does not own the stream, and any node ends it',
  async (t) => {
    const nodes = shared();
    const { publish, whep, kick } = streamOf('flv');
    const [a, b, c] = nodes;
    await publish(t, a, nodes);
    const play = (node: Kiln) => fetch(node.httpUrl('/app/flv.flv?session=over-http'));
    const answer = await play(b);
    t.is(answer.headers.get('content-type'), 'video/x-flv');
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    t.is(Buffer.from(first.value ?? []).toString('latin1', 0, 3), 'FLV');
    t.is((await whep(c, 'over-http')).status, 409);
    t.is(await kick(c, 'over-http'), 200);
    while (!(await reader.read()).done);
    t.is((await play(a)).status, 403, 'it stays out of all nodes');
  },
);

test.serial(
  'viewers that left can come back on another node, and players of LL-HLS and OVT have their session names for themselves',
  async (t) => {
    const nodes = shared();
    const { publish, whep, statuses, llhls, named, kick } = streamOf('protocols');
    const [a, b, c] = nodes;
    await publish(t, a, nodes);
    // sessions that nobody uses are there for some seconds: nothing that has to start yet comes between
    await until('LL-HLS plays', async () => {
      const answer = await fetch(c.httpUrl('/app/protocols/llhls.m3u8'));
      return answer.status === 200;
    });
    const early = await until('OVT plays', () => playOvt(b.ovtUrl('protocols')).catch(() => undefined));
    t.teardown(() => early.client.close());
    const { headers, url } = await whep(b, 'back');
    t.is((await fetch(new URL(headers.get('location') ?? '', url), { method: 'DELETE' })).status, 200);
    await until('the name is free', async () => (await whep(c, 'back')).status === 201);

    t.is((await whep(b, 'web')).status, 201);
    for (const node of nodes) t.is((await llhls(node, 'web')).status, 409);
    const master = await until('LL-HLS plays', async () => {
      const answer = await llhls(c, 'hls');
      return answer.status === 200 && answer.text();
    });
    await fetch(urisOf(master, c.httpUrl('/app/protocols/llhls.m3u8')).at(-1) ?? '');
    t.deepEqual(await statuses(nodes, 'hls'), [409, 409, 409]);
    t.is((await llhls(b, 'hls')).status, 200, 'a player goes on under its name');

    const { client } = await until('OVT plays', () =>
      playOvt(`${b.ovtUrl('protocols')}?session=edge`).catch(() => undefined),
    );
    t.teardown(() => client.close());
    t.deepEqual(await statuses(nodes, 'edge'), [409, 409, 409]);
    await t.throwsAsync(playOvt(`${c.ovtUrl('protocols')}?session=edge`), { message: /already exists/ });

    for (const name of ['web', 'hls', 'edge']) t.is(await kick(c, name), 200, name);
    t.deepEqual(await named(b), ['back']);
    for (const name of ['web', 'hls', 'edge']) {
      t.deepEqual(await statuses(nodes, name), [403, 403, 403], name);
      t.is((await llhls(b, name)).status, 401, name);
      await t.throwsAsync(
        playOvt(`${c.ovtUrl('protocols')}?session=${name}`),
        { message: /ended by the server/ },
        name,
      );
    }
  },
);

long('viewers behind a relay on the node that the publisher came to are listed, and can be kicked', async (t) => {
  const nodes = shared();
  const { sessions, publish, statuses, named, kick } = streamOf('moved');
  const [a, b] = nodes;
  const publisher = await publish(t, a, nodes);
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  await peer.play(b.httpUrl('/app/moved?direction=whep&session=stays'));
  await peer.until(() => peer.frames().length > 10);
  publisher.close();
  await publish(t, b, nodes);
  const before = peer.frames().length;
  await until('the picture goes on', () => peer.frames().length > before + 10);
  for (const node of nodes) t.deepEqual(await named(node), ['stays']);
  t.is((await b.api(`/v1/stats/current${sessions.slice(3)}/stays`)).status, 200);
  t.deepEqual(await statuses(nodes, 'stays'), [409, 409, 409]);
  t.is(await kick(a, 'stays'), 200);
  for (const node of nodes) t.deepEqual(await named(node), []);
  t.deepEqual(await statuses(nodes, 'stays'), [403, 403, 403]);
});

long('nodes admit by what they know while the node that has the stream does not answer', async (t) => {
  const nodes = shared();
  const { publish, whep, statuses, kick } = streamOf('silent');
  const [a, b, c] = nodes;
  await publish(t, a, nodes);
  t.is((await whep(b, 'out')).status, 201);
  t.is(await kick(a, 'out'), 200);
  a.signal('SIGSTOP');
  t.teardown(() => a.signal('SIGCONT'));
  t.deepEqual(await statuses([b, c], 'out'), [403, 403], 'both heard of the kick');
  t.is((await whep(b, 'in')).status, 201);
  t.is((await whep(b, 'in')).status, 409);
});
