import type { VirtualHostConfig } from '../config/model.ts';
import type { AccessRequest } from './request.ts';

type Enables = NonNullable<VirtualHostConfig['signedPolicy']>['enables'];

/** Whether the `Enables` of an access control name the module of a client (facts/03-access-control.md). */
export function isEnabled(
  enables: Enables,
  { direction, protocol }: Pick<AccessRequest, 'direction' | 'protocol'>,
): boolean {
  const names = enables?.[direction === 'incoming' ? 'providers' : 'publishers'];
  return names?.split(',').some((name) => name.trim().toLowerCase() === protocol) === true;
}
