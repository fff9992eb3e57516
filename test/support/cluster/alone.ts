import type { AccessOptions } from '../../../src/access/access.ts';
import { signedPolicy } from '../../../src/access/policy/guard.ts';
import { AdmissionWebhooks } from '../../../src/access/webhooks/index.ts';
import type { Registry } from '../../../src/core/registry.ts';
import { QualityReports } from '../../../src/quality/quality-reports.ts';
import { LiveStreams } from '../../../src/web/live-streams.ts';
import { openAlone } from './cluster.ts';
import { nodeParts } from './node-parts.ts';

/** What a node has of its cluster when it is alone. @param access what it lets clients in with, besides that */
export async function aloneWith(registry: Registry, access: Partial<AccessOptions> = {}) {
  const cluster = await openAlone();
  const parts = nodeParts(cluster, registry, access.log);
  const { log, calls, others, directory, tree, names, sessionNames, redirects } = parts;
  const webhooks = new AdmissionWebhooks({ cluster, registry, log });
  return {
    cluster,
    webhooks,
    calls,
    others,
    directory,
    tree,
    names,
    sessionNames,
    redirects,
    quality: new QualityReports(),
    access: parts.access({
      guards: [signedPolicy(() => []), webhooks.guard],
      webhookSessions: webhooks.sessions,
      ...access,
    }),
    live: new LiveStreams({ registry, directory, others, calls }),
  };
}
