import { Access } from '../access/access.ts';
import { signedPolicy } from '../access/policy/guard.ts';
import { configuredPorts } from '../access/policy/ports.ts';
import { Redirects } from '../access/redirects.ts';
import { AdmissionWebhooks } from '../access/webhooks/index.ts';
import { secretsOf } from '../config/cluster-secrets.ts';
import type { ServerConfig } from '../config/model.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import { ConnectionsElsewhere } from '../stats/connections-elsewhere.ts';
import type { Closable } from './closable.ts';
import type { ClusterServices } from './cluster.ts';
import type { StreamServices } from './streams.ts';

/** Admission of publishers and viewers. */
export interface AdmissionServices {
  readonly access: Access;
  readonly redirects: Redirects;
  readonly webhooks: AdmissionWebhooks;
}

export interface AdmissionServicesOptions {
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly streams: Pick<StreamServices, 'standbys' | 'find'>;
  readonly log: Logger;
}

/** @param components receives those to close */
export function openAdmission(
  { config, registry, nodes, streams, log }: AdmissionServicesOptions,
  components: Closable[],
): AdmissionServices {
  const { cluster, directory, sessionNames } = nodes;
  const webhooks = new AdmissionWebhooks({ cluster, registry, log, hidesClients: config.privacyProtection });
  const viewersElsewhere = new ConnectionsElsewhere(cluster);
  const access = new Access({
    registry,
    names: streams.standbys,
    sessionNames,
    find: streams.find,
    elsewhere: directory,
    countElsewhere: (application) => viewersElsewhere.of(application),
    guards: [signedPolicy(configuredPorts(config.bind)), webhooks.guard],
    webhookSessions: webhooks.sessions,
    log,
  });
  const secrets = config.cluster === undefined ? [] : secretsOf(config.cluster);
  components.push(access, webhooks);
  return { access, redirects: new Redirects({ cluster, registry, directory, secrets }), webhooks };
}
