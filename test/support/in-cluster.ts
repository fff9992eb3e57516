import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { PeerRequest } from '#cluster';
import { Access } from '../../src/access/access.ts';
import type { Application } from '../../src/core/application.ts';
import type { Registry } from '../../src/core/registry.ts';
import type { OutputStream } from '../../src/core/stream.ts';
import type { Track } from '../../src/core/track.ts';
import { OtherNodes } from '../../src/origins/other-nodes.ts';
import { PeerCalls } from '../../src/origins/peer-calls.ts';
import { SessionNames } from '../../src/origins/session-names.ts';
import { StreamDirectory } from '../../src/origins/stream-directory.ts';
import { StreamNames } from '../../src/origins/stream-names.ts';
import { openNode } from './cluster.ts';
import type { RedisServer } from './redis.ts';
import { until } from './until.ts';
import { NO_OPENINGS } from './access.ts';

/** What a node of this process has to do with others that have the same Redis. `asked` is what they called it for. */
export async function inCluster(t: ExecutionContext, redis: RedisServer, id: string, registry: Registry) {
  const cluster = await openNode(t, id, { url: redis.url });
  const asked: PeerRequest[] = [];
  const directory = new StreamDirectory({ cluster, registry });
  const log = pino({ level: 'silent' });
  const names = new StreamNames({ cluster, registry, log });
  const serve = cluster.serve.bind(cluster);
  cluster.serve = (handler, streams) =>
    serve((request, from) => {
      asked.push(request);
      return handler(request, from);
    }, streams);
  const calls = new PeerCalls(cluster, log);
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
  const others = new OtherNodes(cluster, calls);
  const sessionNames = new SessionNames({ registry, cluster, directory, others, calls, log });
  const access = new Access({
    registry,
    names,
    sessionNames,
    find: async () => undefined,
    elsewhere: directory,
    countElsewhere: async () => undefined,
    guards: [],
    openings: NO_OPENINGS,
    log,
  });
  return { cluster, access, directory, names, calls, others, asked, goLive, knows };
}
