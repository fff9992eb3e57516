import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { UnreachableError } from '#cluster';
import type { LlhlsSetup } from '../../../../support/hls/llhls.ts';
import { feeder, openLlhlsNode, untilKnown } from '../../../../support/hls/llhls-nodes.ts';
import { MemoryCluster } from '../../../../support/memory-cluster/cluster.ts';
import { GUARDED, NotedSessions } from '../../../../support/access/noted-sessions.ts';
import { audioTrack, videoTrack } from '../../../../support/media/packets.ts';
import { until } from '../../../../support/time/until.ts';
import { virtualTime } from '../../../../support/time/virtual-time.ts';

const MASTER = '/app/stream/llhls.m3u8';

/** A stream of node `a` that can be played from `b`, of whose answers `left` ends the first as if its client had left. */
async function live(t: ExecutionContext, setup: LlhlsSetup = {}) {
  virtualTime(t);
  const nodes = MemoryCluster.create(t, 1);
  const [a, b] = await Promise.all([openLlhlsNode(t, nodes, 'a', setup), openLlhlsNode(t, nodes, 'b', setup)]);
  const answers: ServerResponse[] = [];
  b.app.addHook('onRequest', async (_request, reply) => void answers.push(reply.raw as ServerResponse));
  const { output } = await a.goLive([videoTrack(), audioTrack()]);
  await untilKnown(b, a);
  feeder(output)(3.1);
  /** Asks for the master playlist, until the viewer leaves. */
  const ask = (): void => void b.get(MASTER).catch(() => {});
  return { b, output, ask, leave: () => answers[0]?.destroy() };
}

test('a viewer who leaves while no node answers for the stream waits no longer, and is not counted', async (t) => {
  const openings = new NotedSessions('b');
  const { b, output, ask, leave } = await live(t, {
    vhost: GUARDED,
    access: { guards: [openings.guard], webhookSessions: openings },
  });
  const { forward } = b.cluster;
  let attempts = 0;
  b.cluster.forward = () => {
    attempts++;
    return Promise.reject(new UnreachableError('the cable was pulled'));
  };
  ask();
  await until('it is asked for again', () => attempts > 2);
  leave();
  await until('the viewer is over', () => openings.closed.length > 0);
  t.deepEqual(openings.closed, ['b1: The client has gone']);
  b.cluster.forward = forward;
  t.is((await b.get(MASTER)).statusCode, 200);
  t.is(output.sessions.size, 1);
  t.deepEqual(
    b.asked.filter((call) => call.includes('master')),
    ['/llhls/master/llhls'],
  );
});

test('a viewer who leaves while the owner is asked is not counted', async (t) => {
  const { b, ask, leave } = await live(t);
  const { forward } = b.cluster;
  const answered = Promise.withResolvers<void>();
  let attempts = 0;
  b.cluster.forward = async (...call) => {
    attempts++;
    await answered.promise;
    return forward(...call);
  };
  ask();
  await until('the owner is asked', () => attempts > 0);
  const stays = b.get(MASTER);
  leave();
  answered.resolve();
  t.is((await stays).statusCode, 200);
  t.is(b.sessions().length, 1);
});
