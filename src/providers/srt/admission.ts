import { checkAccess } from '../../access/gate.ts';
import type { SrtProviderConfig } from '../../config/model.ts';
import { internalName } from '../../core/application.ts';
import { isStreamName } from '../../core/names.ts';
import type { Registry } from '../../core/registry.ts';
import type { Source } from '../../core/source.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { kilnError } from '../../errors.ts';
import type { StreamId } from '../../protocols/srt/stream-id.ts';

/** Where a publisher may publish. */
export interface Admission {
  readonly vhost: VirtualHost;
  readonly config: SrtProviderConfig;
}

/** @throws vhostNotFound, accessDenied, applicationNotFound, providerDisabled, streamNameInvalid */
export function admit(registry: Registry, { host, app, stream }: StreamId): Admission {
  const vhost = registry.vhosts.get(host) ?? registry.resolve(host);
  if (vhost === undefined) throw kilnError('vhostNotFound', host);
  checkAccess(vhost, 'providers', 'srt');
  const config = vhost.demandConfig(app).providers.srt;
  if (config === undefined) throw kilnError('providerDisabled', 'SRT', internalName(vhost.name, app));
  if (!isStreamName(stream)) throw kilnError('streamNameInvalid', stream.slice(0, 80));
  return { vhost, config };
}

/**
 * What can be told of a publisher without asking another node. Nothing is made, nothing is waited for.
 * @throws what `admit` and Application.check() do
 */
export function checkHere(registry: Registry, id: StreamId): void {
  const { vhost, config } = admit(registry, id);
  if (registry.draining) throw kilnError('nodeDraining');
  vhost.applications.get(id.app)?.check(id.stream, SOURCE, publishOptions(config));
}

export const SOURCE: Pick<Source, 'type' | 'kind'> = { type: 'SRT', kind: 'srt' };

export function publishOptions({ blockDuplicateStreamName, maxConnection }: SrtProviderConfig) {
  return { replace: !blockDuplicateStreamName, maxConnections: maxConnection };
}
