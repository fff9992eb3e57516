import type { VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';

type Direction = 'providers' | 'publishers';

/**
 * Refuses a client of a provider or publisher that access control is enabled for.
 * Nothing can check a signed policy or ask an admission webhook: what they guard stays shut.
 * @param module lower-case module name, as in `Enables` (facts/03-access-control.md)
 * @throws accessDenied
 */
export function checkAccess(vhost: VirtualHost, direction: Direction, module: string): void {
  const { signedPolicy, admissionWebhooks } = vhost.config;
  for (const control of [signedPolicy, admissionWebhooks]) {
    const enabled = control?.enables?.[direction] ?? '';
    const names = enabled.split(',').map((name) => name.trim().toLowerCase());
    if (names.includes(module)) throw kilnError('accessDenied', module);
  }
}
