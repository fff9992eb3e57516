import type { ExecutionContext } from 'ava';
import type { PeerRequest } from '#cluster';
import type { Application } from '../../../src/core/application.ts';
import type { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { openNode } from './cluster.ts';
import { nodeParts } from './node-parts.ts';
import type { RedisServer } from '../redis/redis.ts';
import { until } from '../time/until.ts';

/** What a node of this process has to do with others that have the same Redis. `asked` is what they called it for. */
export async function inCluster(t: ExecutionContext, redis: RedisServer, id: string, registry: Registry) {
  const cluster = await openNode(t, id, { url: redis.url });
  const asked: PeerRequest[] = [];
  const serve = cluster.serve.bind(cluster);
  cluster.serve = (handler, streams) =>
    serve((request, from) => {
      asked.push(request);
      return handler(request, from);
    }, streams);
  const { names, directory, calls, others, access } = nodeParts(cluster, registry);
  t.teardown(() => registry.close('the test is over'));
  /** A live stream of this node, under a name that the others hear of. */
  const goLive = async (application: Application, name: string, tracks: readonly Track[]): Promise<OutputStream> => {
    const options = { replace: false, maxConnections: 0, silence: 'continue' } as const;
    const input = await names.publish(application, name, { type: 'Rtmp', kind: 'rtmp' }, options);
    input.setTracks(tracks);
    const output = application.addOutput(input, name);
    output.setTracks(tracks);
    application.announce(output);
    return output;
  };
  const knows = (application: Application, stream: string): Promise<unknown> =>
    until(`${id} knows of ${stream}`, () => directory.known(application, stream) !== undefined);
  return { cluster, access: access(), directory, names, calls, others, asked, goLive, knows };
}
