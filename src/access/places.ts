import { internalName, type Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';
import { limitConnections } from './connection-limits.ts';
import type { Verdict } from './guard.ts';
import { Limits } from './limits.ts';
import type { ProviderConfig } from './publisher-grant.ts';
import {
  PROTOCOL_NAMES,
  publisherConfig,
  type AccessRequest,
  type IncomingProtocol,
  type PlayRequest,
  type Target,
} from './request.ts';

/** Names that a client is admitted with. */
export interface Place extends Omit<Target, 'hostName'> {
  readonly vhost: VirtualHost;
}

/** Leads requests to virtual hosts, applications and modules. Needs nothing but the registry: each check is answered at once. */
export class Places {
  readonly limits = new Limits();
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** @throws vhostNotFound */
  vhost({ vhostName, hostName }: Pick<AccessRequest, 'vhostName' | 'hostName'>): VirtualHost {
    const named = vhostName === undefined ? undefined : this.#registry.vhosts.get(vhostName);
    const vhost = named ?? this.#registry.resolve(hostName);
    if (vhost === undefined) throw kilnError('vhostNotFound', hostName);
    return vhost;
  }

  /** Virtual host of a client that this node accepts. @throws vhostNotFound, nodeDraining, networkForbidden, tooOften */
  enter(request: AccessRequest): VirtualHost {
    const vhost = this.vhost(request);
    if (request.direction === 'incoming' && this.#registry.draining) throw kilnError('nodeDraining');
    this.limits.check(request, vhost, request.app);
    return vhost;
  }

  /** Requested names, as the guards have replaced them. @throws vhostNotFound */
  of(vhost: VirtualHost, { app, stream, playlist }: AccessRequest, verdicts: readonly Verdict[]): Place {
    const { hostName, ...names } = Object.assign({}, ...verdicts.map(({ target }) => target)) as Partial<Target>;
    return { app, stream, playlist, ...names, vhost: hostName === undefined ? vhost : this.vhost({ hostName }) };
  }
}

/** Configuration of a provider. @throws applicationNotFound, providerDisabled */
export function demandProvider<P extends IncomingProtocol>(
  protocol: P,
  { vhost, app }: Pick<Place, 'vhost' | 'app'>,
): ProviderConfig<P> {
  const config = vhost.demandConfig(app).providers[protocol];
  if (config === undefined)
    throw kilnError('providerDisabled', PROTOCOL_NAMES[protocol], internalName(vhost.name, app));
  return config as ProviderConfig<P>;
}

/** Checks that an application has room for a viewer. Without its publisher module it has no streams. @throws streamNotFound, tooManyConnections */
export function checkRoom(application: Application, { protocol, stream }: PlayRequest): void {
  if (publisherConfig(application.config, protocol) === undefined)
    throw kilnError('streamNotFound', `${application.internalName}/${stream}`);
  limitConnections(application, protocol);
}
