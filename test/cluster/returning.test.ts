import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { aac } from '../support/media/aac.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { nodesOf, startNode, usedRedis } from '../support/server/nodes.ts';
import { Origin } from '../support/ovt/origin.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';

const SCENE = { video: await h264({ seconds: 2, kbit: 200, gop: 15 }), audio: await aac(440) };
const SHORT = '<SegmentDuration>1</SegmentDuration><SegmentCount>10</SegmentCount>';

async function open(t: ExecutionContext): Promise<[Kiln, Kiln, Kiln]> {
  const redis = await usedRedis(t);
  const start = (id: string) => startNode(t, redis, id, { llhls: SHORT, hls: SHORT });
  return (await Promise.all(['a', 'b', 'c'].map(start))) as [Kiln, Kiln, Kiln];
}

/** Publishes every 200 ms until it is accepted. @returns why it was refused, each time */
async function publish(t: ExecutionContext, node: Kiln, name: string): Promise<string[]> {
  const refused: string[] = [];
  for (;;) {
    const publisher = await MediaPublisher.start(node.ports.rtmp, name, [SCENE]).catch((error: Error) => {
      refused.push(error.message);
    });
    if (publisher !== undefined) {
      t.teardown(() => publisher.close());
      return refused;
    }
    await delay(200);
  }
}

async function watch(t: ExecutionContext, node: Kiln, name: string): Promise<ViewerPeer> {
  const peer = new ViewerPeer({ audio: false });
  t.teardown(() => peer.close());
  await peer.play(`http://127.0.0.1:${node.ports.http}/app/${name}?direction=whep`);
  return peer;
}

const get = async (node: Kiln, path: string): Promise<{ status: number; text: string }> => {
  const answer = await fetch(node.httpUrl(path));
  return { status: answer.status, text: await answer.text() };
};

/** Path of the first chunklist that a master playlist names. */
function chunklist(master: string, text: string): string {
  const line = text.split('\n').find((uri) => uri !== '' && !uri.startsWith('#')) ?? '';
  const { pathname, search } = new URL(line, `http://node${master}`);
  return pathname + search;
}

const hasMoved = (playlist: string): boolean => /#EXT-X-DISCONTINUITY\n[^]*#EXTINF/.test(playlist);

/** Whether the log of a node has an event of a stream. */
const told = (node: Kiln, event: string, name: string): boolean =>
  node.log.split('\n').some((line) => line.includes(`"event":"${event}"`) && line.includes(`/${name}"`));

test.serial(
  'the node of a stream is killed: its encoder is accepted elsewhere without a refusal, and every viewer gets the new media',
  async (t) => {
    const [a, b, c] = await open(t);
    t.deepEqual(await publish(t, a, 'tale'), []);
    const viewer = await until('it plays', () => watch(t, c, 'tale').catch(() => undefined));
    const master = '/app/tale/llhls.m3u8';
    const first = await until('LL-HLS plays', async () => {
      const answer = await get(c, master);
      return answer.status === 200 && answer.text;
    });
    const list = chunklist(master, first);
    await until('there is a segment', async () => (await get(c, list)).text.includes('#EXTINF'));

    const killed = performance.now();
    a.signal('SIGKILL');
    // nobody at this node has asked for this form before
    const late = '/app/tale/ts:playlist.m3u8';
    const newcomers = Promise.all([watch(t, b, 'tale'), get(c, late)]);
    // what becomes of them is looked at below, unless the test fails before
    newcomers.catch(() => undefined);
    t.deepEqual(await publish(t, b, 'tale'), []);
    t.log(`accepted ${Math.round(performance.now() - killed)} ms after the kill`);
    t.log(told(b, 'publisher.held', 'tale') ? 'after it was held' : 'at once: the death was known already');
    const before = viewer.frames().length;
    await until('the viewer sees the new media', () => viewer.frames().length > before + 20);
    t.log(`seen over WebRTC ${Math.round(performance.now() - killed)} ms after it`);
    await until('the player goes on', async () => hasMoved((await get(c, list)).text));
    const [newcomer, ts] = await newcomers;
    await until('who came meanwhile has a picture', () => newcomer.frames().length > 20);
    // 201 as at any start, as long as there is no segment
    t.true([200, 201].includes(ts.status), `${ts.status}: ${ts.text}`);
    const other = await until('there is something to play', async () => {
      const answer = await get(c, late);
      return answer.status === 200 && answer.text;
    });
    await until('HLS plays', async () => (await get(c, chunklist(late, other))).text.includes('#EXTINF'));
  },
);

long('an encoder that gives up each attempt soon, and begins another, is not kept out by those before', async (t) => {
  const [a, b] = await open(t);
  t.deepEqual(await publish(t, a, 'haste'), []);
  a.signal('SIGKILL');
  const refused: string[] = [];
  let attempts = 0;
  await until('it is accepted', async () => {
    const client = await RtmpClient.connect({ port: b.ports.rtmp });
    // on a machine that is busy an attempt takes a while
    const waitMs = 200 + 20 * attempts++;
    const outcome = await Promise.race([
      client.publish('haste').then(
        () => 'accepted',
        (error: Error) => error.message,
      ),
      delay(waitMs).then(() => 'given up'),
    ]);
    if (outcome !== 'accepted') client.close();
    else t.teardown(() => client.close());
    if (outcome !== 'accepted' && outcome !== 'given up') refused.push(outcome);
    return outcome === 'accepted';
  });
  t.deepEqual(refused, []);
  t.log(`${attempts} attempts`);
});

long('viewers that request pulled streams of a node while it is killed are held', async (t) => {
  const origin = await Origin.start(t);
  await origin.publish('far', 25);
  const redis = await usedRedis(t);
  const start = (id: string) => startNode(t, redis, id, { ovt: true, llhls: SHORT });
  const [a, , c] = (await Promise.all(['a', 'b', 'c'].map(start))) as [Kiln, Kiln, Kiln];
  // who is asked pulls nothing itself, and who is to take them over nothing yet
  for (const id of ['c', 'b']) t.is((await c.api(`/v1/cluster/nodes/${id}:drain`, 'POST')).status, 200);
  const names = Array.from({ length: 15 }, (_, n) => `near${n}`);
  for (const name of names) {
    const made = await a.api('/v1/vhosts/default/apps/app/streams', 'POST', {
      name,
      urls: [origin.url('far')],
      properties: { persistent: true },
    });
    t.is(made.status, 201, JSON.stringify(made.body));
  }
  t.is((await c.api('/v1/cluster/nodes/b:undrain', 'POST')).status, 200);
  const streams = async (): Promise<number | undefined> => (await nodesOf(c)).get('b')?.streams;
  t.is(await streams(), 0);
  await until('b takes streams again', async () => (await nodesOf(a)).get('b')?.state === 'ready');

  a.signal('SIGKILL');
  // each is asked for once, at a time of its own: this node has nothing of it
  const statuses = await Promise.all(
    names.map(async (name, n) => {
      await delay(400 * n);
      return (await get(c, `/app/${name}/llhls.m3u8`)).status;
    }),
  );
  t.log(statuses.join(' '));
  t.false(statuses.includes(404));
  // of a machine that is very busy the last may have been held for too long
  t.true(statuses.filter((status) => status < 300).length >= names.length / 2);
  await until('the other pulls all', async () => (await streams()) === names.length);
});
