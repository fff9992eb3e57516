import { PullError } from '../../../src/providers/pull/error.ts';

/** What a guard of pulls says. */
export const PULLING = { action: 'pulling from', error: (reason: string) => new PullError(reason) };
