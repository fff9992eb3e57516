import { checkAccess } from '../../access/gate.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import { internalName, type Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { kilnError } from '../../errors.ts';
import { streamName, type PublishAddress } from './address.ts';

/** What a client is let publish. */
export interface PublishTarget {
  readonly application: Application;
  readonly config: RtmpProviderConfig;
  readonly name: string;
}

/**
 * Where a client may publish to.
 * @param localAddress of this side, where the client names no host
 * @throws accessDenied, vhostNotFound, applicationNotFound, providerDisabled
 */
export function admit(
  registry: Registry,
  { host, app }: PublishAddress,
  localAddress: string,
): { vhost: VirtualHost; config: RtmpProviderConfig } {
  const name = host === '' ? localAddress : host;
  const vhost = registry.resolve(name);
  if (vhost === undefined) throw kilnError('vhostNotFound', name);
  checkAccess(vhost, 'providers', 'rtmp');
  const config = vhost.demandConfig(app).providers.rtmp;
  if (config === undefined) throw kilnError('providerDisabled', 'RTMP', internalName(vhost.name, app));
  return { vhost, config };
}

/** @param key as `publish` brings it @throws what `admit` does, streamNameInvalid */
export function publishTarget(
  registry: Registry,
  address: PublishAddress,
  localAddress: string,
  key: string,
): PublishTarget {
  const { vhost, config } = admit(registry, address, localAddress);
  const name = streamName(key, address);
  if (name === undefined) throw kilnError('streamNameInvalid', key.split('?', 1)[0]?.slice(0, 80) ?? '');
  return { application: vhost.demandApplication(address.app), config, name };
}
