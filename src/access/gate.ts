import type { VirtualHost } from '../core/vhost.ts';
import { accessDenied, Denial } from './denial.ts';
import { isEnabled } from './enables.ts';
import type { Guard } from './guard.ts';
import { PROTOCOL_NAMES, type AccessRequest } from './request.ts';

/** Whether signed policies or admission webhooks are configured for clients of a protocol. */
export function isGuarded(
  { config: { signedPolicy, admissionWebhooks } }: VirtualHost,
  client: Pick<AccessRequest, 'direction' | 'protocol'>,
): boolean {
  return [signedPolicy, admissionWebhooks].some((control) => isEnabled(control?.enables, client));
}

/** Refuses clients that admission webhooks are configured for: nothing can ask them, so what they guard stays shut. */
export const shutGate: Guard = (request, { config: { admissionWebhooks } }) => {
  if (!isEnabled(admissionWebhooks?.enables, request)) return undefined;
  const reason = `AdmissionWebhooks is configured for ${PROTOCOL_NAMES[request.protocol]} but is not available: every client is refused`;
  throw accessDenied(new Denial('unavailable', reason));
};
