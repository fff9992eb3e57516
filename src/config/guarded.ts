import type { VirtualHostConfig } from './model.ts';

/**
 * Whether signed policies or admission webhooks are configured for clients of a module (facts/03-access-control.md).
 * @param name as `Enables` has it, in lower case
 */
export function isEnabled(
  { signedPolicy, admissionWebhooks }: Pick<VirtualHostConfig, 'signedPolicy' | 'admissionWebhooks'>,
  side: 'providers' | 'publishers',
  name: string,
): boolean {
  return [signedPolicy, admissionWebhooks].some((control) => {
    const enabled = control?.enables?.[side];
    return enabled?.split(',').some((given) => given.trim().toLowerCase() === name) === true;
  });
}
