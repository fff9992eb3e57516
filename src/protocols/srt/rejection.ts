import type { KilnError } from '../../errors.ts';

/** Reasons that a listener gives (SRT API, "rejection-codes"): HTTP's with 1000 added, and one of SRT's own. */
export const REJECTION = {
  badRequest: 1400,
  overload: 1402,
  forbidden: 1403,
  badMode: 1405,
  internal: 1500,
  down: 1503,
} as const;

/** Rejection code for an error of the error table. */
export function rejectionOf({ code, status }: KilnError): number {
  return code === 'tooManyConnections' || code === 'tooManyApplications' ? REJECTION.overload : 1000 + status;
}
