import { Access } from '../access/access.ts';
import { fetchKeys } from '../access/jwt/fetch-keys.ts';
import { jsonWebTokens } from '../access/jwt/guard.ts';
import { KeySources } from '../access/jwt/key-sources.ts';
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
import { outboundGuard } from './outbound.ts';
import type { StreamServices } from './streams.ts';

/** Admission of publishers and viewers. */
export interface AdmissionServices {
  readonly access: Access;
  readonly redirects: Redirects;
  readonly webhooks: AdmissionWebhooks;
}

export interface AdmissionServicesOptions {
  readonly config: ServerConfig;
  /** Base of relative paths. */
  readonly folder: string;
  readonly registry: Registry;
  readonly nodes: ClusterServices;
  readonly streams: Pick<StreamServices, 'standbys' | 'find'>;
  readonly log: Logger;
}

/** @param components receives those to close */
export function openAdmission(
  { config, folder, registry, nodes, streams, log }: AdmissionServicesOptions,
  components: Closable[],
): AdmissionServices {
  const { cluster, directory, sessionNames } = nodes;
  const webhooks = new AdmissionWebhooks({ cluster, registry, log, hidesClients: config.privacyProtection });
  const keys = new KeySources({ folder, fetch: fetchKeys(outboundGuard(config, cluster, 'keys')), log });
  const viewersElsewhere = new ConnectionsElsewhere(cluster);
  const access = new Access({
    registry,
    names: streams.standbys,
    sessionNames,
    find: streams.find,
    elsewhere: directory,
    countElsewhere: (application) => viewersElsewhere.of(application),
    guards: [signedPolicy(configuredPorts(config.bind)), jsonWebTokens(keys), webhooks.guard],
    webhookSessions: webhooks.sessions,
    log,
  });
  access.revocations.follow(cluster.config);
  const secrets = config.cluster === undefined ? [] : secretsOf(config.cluster);
  components.push(access, keys, webhooks);
  return { access, redirects: new Redirects({ cluster, registry, directory, secrets }), webhooks };
}
