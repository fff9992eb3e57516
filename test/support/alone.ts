import { pino } from 'pino';
import { Access, type AccessOptions } from '../../src/access/access.ts';
import { signedPolicy } from '../../src/access/policy/guard.ts';
import { AdmissionWebhooks } from '../../src/access/webhooks/index.ts';
import type { Registry } from '../../src/core/registry.ts';
import { OtherNodes } from '../../src/origins/other-nodes.ts';
import { PeerCalls } from '../../src/origins/peer-calls.ts';
import { SessionNames } from '../../src/origins/session-names.ts';
import { StreamDirectory } from '../../src/origins/stream-directory.ts';
import { StreamNames } from '../../src/origins/stream-names.ts';
import { LiveStreams } from '../../src/web/live-streams.ts';
import { openAlone } from './cluster.ts';

/** What a node has of its cluster when it is alone. @param access what it lets clients in with, besides that */
export async function aloneWith(registry: Registry, access: Partial<AccessOptions> = {}) {
  const cluster = await openAlone();
  const { log = pino({ level: 'silent' }) } = access;
  const calls = new PeerCalls(cluster, log);
  const others = new OtherNodes(cluster, calls);
  const directory = new StreamDirectory({ cluster, registry });
  const webhooks = new AdmissionWebhooks({ cluster, registry, answers: others.answers.bind(others), log });
  const names = new StreamNames({ cluster, registry, log });
  const sessionNames = new SessionNames({ registry, cluster, directory, others, calls, log });
  return {
    cluster,
    webhooks,
    calls,
    others,
    directory,
    names,
    sessionNames,
    access: new Access({
      registry,
      names,
      sessionNames,
      find: async () => undefined,
      elsewhere: directory,
      countElsewhere: async () => undefined,
      guards: [signedPolicy(() => []), webhooks.guard],
      openings: webhooks.openings,
      log,
      ...access,
    }),
    live: new LiveStreams({ registry, directory, others, calls }),
  };
}
