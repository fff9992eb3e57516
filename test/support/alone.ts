import { pino } from 'pino';
import type { Registry } from '../../src/core/registry.ts';
import { OtherNodes } from '../../src/origins/other-nodes.ts';
import { PeerCalls } from '../../src/origins/peer-calls.ts';
import { StreamDirectory } from '../../src/origins/stream-directory.ts';
import { StreamNames } from '../../src/origins/stream-names.ts';
import { LiveStreams } from '../../src/web/live-streams.ts';
import { openAlone } from './cluster.ts';

/** What a node has of its cluster when it is alone. */
export async function aloneWith(registry: Registry) {
  const cluster = await openAlone();
  const calls = new PeerCalls(cluster);
  const others = new OtherNodes(cluster);
  const directory = new StreamDirectory({ cluster, registry });
  const names = new StreamNames({ cluster, registry, log: pino({ level: 'silent' }) });
  return { cluster, calls, others, directory, names, live: new LiveStreams({ registry, directory, others, calls }) };
}
