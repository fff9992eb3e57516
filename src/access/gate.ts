import type { VirtualHost } from '../core/vhost.ts';
import { isEnabled } from './enables.ts';
import type { AccessRequest } from './request.ts';

/** Whether signed policies or admission webhooks are configured for clients of a protocol. */
export function isGuarded(
  { config: { signedPolicy, admissionWebhooks } }: VirtualHost,
  client: Pick<AccessRequest, 'direction' | 'protocol'>,
): boolean {
  return [signedPolicy, admissionWebhooks].some((control) => isEnabled(control?.enables, client));
}
