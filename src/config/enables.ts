import type { VirtualHostConfig } from './model.ts';

type Controls = Pick<VirtualHostConfig, 'signedPolicy' | 'jwt' | 'admissionWebhooks'>;
type Enables = NonNullable<Controls['signedPolicy']>['enables'];

interface Controlled {
  readonly direction: 'incoming' | 'outgoing';
  /** Name of the module as `Enables` has it, in lower case. */
  readonly protocol: string;
}

/** Whether the `Enables` of an access control name the module of a client (docs/compatibility.md#control-servers). */
export function isEnabled(enables: Enables, { direction, protocol }: Controlled): boolean {
  const names = enables?.[direction === 'incoming' ? 'providers' : 'publishers'];
  return names?.split(',').some((name) => name.trim().toLowerCase() === protocol) === true;
}

/** Whether signed policies, tokens or admission webhooks are configured for the clients of a module. */
export function isGuarded({ signedPolicy, jwt, admissionWebhooks }: Controls, client: Controlled): boolean {
  return [signedPolicy, jwt, admissionWebhooks].some((control) => isEnabled(control?.enables, client));
}
