import { shownReason } from '../../protocols/outbound/shown.ts';

/**
 * A stream could not be pulled. The message tells the operator why: in the answer of the management API and in the log.
 * It may quote what an origin says, and never has secrets of a URL in it.
 */
export class PullError extends Error {
  override readonly name = 'PullError';

  constructor(reason: string) {
    super(shownReason(reason));
  }
}
