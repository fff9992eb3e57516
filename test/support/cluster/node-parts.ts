import { pino } from 'pino';
import type { Cluster } from '#cluster';
import { Redirects } from '../../../src/access/redirects.ts';
import { Access, type AccessOptions } from '../../../src/access/access.ts';
import type { Registry } from '../../../src/core/registry.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import { RelayTree } from '../../../src/directory/relay-tree.ts';
import { SessionNames } from '../../../src/directory/session-names.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import { StreamDirectory } from '../../../src/directory/stream-directory.ts';
import { StreamNames } from '../../../src/directory/stream-names.ts';
import { NO_WEBHOOK_SESSIONS } from '../access/access.ts';

/** What a node knows of the streams of its cluster, and how it calls the others. */
export function nodeParts(cluster: Cluster, registry: Registry, log = pino({ level: 'silent' })) {
  const directory = new StreamDirectory({ cluster, registry });
  const calls = new PeerCalls(cluster, log);
  const tree = new RelayTree(cluster, 8);
  const others = new OtherNodes(cluster, calls);
  const changes = new StreamChanges(registry, directory);
  const names = new StreamNames({ cluster, registry, changes, log });
  const sessionNames = new SessionNames({ registry, cluster, directory, others, calls, log });
  const redirects = new Redirects({ cluster, registry, directory, secrets: ['of this test'] });
  /** Admits everybody to what is on the node, unless `more` says otherwise. */
  const access = (more: Partial<AccessOptions> = {}): Access =>
    new Access({
      registry,
      names,
      sessionNames,
      find: async () => undefined,
      elsewhere: directory,
      countElsewhere: async () => undefined,
      guards: [],
      webhookSessions: NO_WEBHOOK_SESSIONS,
      log,
      ...more,
    });
  return { log, names, directory, tree, changes, calls, others, sessionNames, redirects, access };
}
