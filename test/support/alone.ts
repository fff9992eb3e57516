import { pino } from 'pino';
import type { Registry } from '../../src/core/registry.ts';
import { OtherNodes } from '../../src/origins/other-nodes.ts';
import { PeerCalls } from '../../src/origins/peer-calls.ts';
import { SessionNames } from '../../src/origins/session-names.ts';
import { StreamDirectory } from '../../src/origins/stream-directory.ts';
import { StreamNames } from '../../src/origins/stream-names.ts';
import { LiveStreams } from '../../src/web/live-streams.ts';
import { openAlone } from './cluster.ts';

/** What a node has of its cluster when it is alone. */
export async function aloneWith(registry: Registry) {
  const cluster = await openAlone();
  const log = pino({ level: 'silent' });
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const directory = new StreamDirectory({ cluster, registry });
  const names = new StreamNames({ cluster, registry, log });
  const sessionNames = new SessionNames({ registry, cluster, directory, others, calls, log });
  return {
    cluster,
    calls,
    others,
    directory,
    names,
    sessionNames,
    live: new LiveStreams({ registry, directory, others, calls }),
  };
}
