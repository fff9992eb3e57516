import { shownReason } from '../../protocols/outbound/shown.ts';

/**
 * Failure to pull a stream. The message says why, in the answer of the management API and in the log. It may quote an
 * origin, and never holds secrets of a URL.
 */
export class PullError extends Error {
  override readonly name = 'PullError';

  constructor(reason: string) {
    super(shownReason(reason));
  }
}
