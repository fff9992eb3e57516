import type { VirtualHostConfig } from '../config/model.ts';
import type { AccessRequest } from './request.ts';

/** A virtual host's access control of either kind. */
type Control = VirtualHostConfig['signedPolicy'] | VirtualHostConfig['admissionWebhooks'];

/** Whether access control is switched on for clients of a protocol: its name is in `Enables` (facts/03-access-control.md). */
export function isEnabled(
  control: Control,
  { direction, protocol }: Pick<AccessRequest, 'direction' | 'protocol'>,
): boolean {
  const enabled = control?.enables?.[direction === 'incoming' ? 'providers' : 'publishers'];
  return enabled?.split(',').some((name) => name.trim().toLowerCase() === protocol) === true;
}
