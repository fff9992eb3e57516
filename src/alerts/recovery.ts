import type { AlertMessage } from '../core/registry.ts';

/** Sent when a stream keeps all rules again (docs/compatibility.md#alerts). */
export const GOOD: AlertMessage = { code: 'OK', description: 'The current status is good' };

/** Sent when a stream has ended that broke a rule. */
export const ENDED: AlertMessage = { code: 'OK', description: 'The stream has ended' };
