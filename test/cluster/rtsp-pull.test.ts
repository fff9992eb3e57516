import test from 'ava';
import { GST, startGst } from '../support/rtsp/gst-rtsp.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { nodesOf, startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';

test('a camera that is pulled by a node that is killed is pulled by another', async (t) => {
  const server = await startGst(t, { mounts: { '/live': `( ${GST.h264()} ${GST.aac()} )` } });
  const redis = await usedRedis(t);
  const nodes = (await Promise.all(['a', 'b'].map((id) => startNode(t, redis, id, { providers: '<RTSPPull/>' })))) as [
    Kiln,
    Kiln,
  ];
  for (const node of nodes) await untilStates(node, { a: 'ready', b: 'ready' });
  const made = await nodes[0].api(STREAMS, 'POST', {
    name: 'cam',
    urls: [server.url('/live')],
    properties: { persistent: true },
  });
  t.is(made.status, 201, JSON.stringify(made.body));
  await until('it is found on both', async () => (await nodes[1].stream('cam')).status === 200);
  const holder = await until(
    'one of them counts it',
    async () => [...(await nodesOf(nodes[0])).values()].find(({ streams }) => streams === 1)?.id,
  );
  const [victim, other] = holder === 'b' ? [nodes[1], nodes[0]] : nodes;
  victim.signal('SIGKILL');
  await victim.exited();
  await until('the other node pulls it', async () => {
    const { status, body } = await other.stream('cam');
    const { tracks = [], sourceType } = body.response?.input ?? {};
    // who is dead tells nothing: what has tracks is this node's
    return status === 200 && sourceType === 'RtspPull' && tracks.length > 0;
  });
  const playlist = await until('it plays there', async () => {
    const answer = await fetch(other.httpUrl('/app/cam/llhls.m3u8'));
    return answer.status === 200 && answer.text();
  });
  t.regex(playlist, /#EXTM3U/);
});
