import { isEnabled } from '../config/guarded.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';
import type { Guard } from './guard.ts';
import { PROTOCOL_NAMES, type AccessRequest } from './request.ts';

/** Whether signed policies or admission webhooks are configured for clients of a protocol (facts/03-access-control.md). */
export function isGuarded(
  { config }: VirtualHost,
  { direction, protocol }: Pick<AccessRequest, 'direction' | 'protocol'>,
): boolean {
  return isEnabled(config, direction === 'incoming' ? 'providers' : 'publishers', protocol);
}

/**
 * Refuses clients that access control is configured for: nothing can check a signed policy or ask an admission webhook,
 * so what they guard stays shut.
 */
export const shutGate: Guard = (request, vhost) => {
  if (isGuarded(vhost, request)) throw kilnError('accessDenied', PROTOCOL_NAMES[request.protocol]);
  return undefined;
};
