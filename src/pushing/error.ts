import { shownReason } from '../protocols/outbound/shown.ts';

/**
 * A push that failed. The message gives the operator the reason in the log; it may quote the destination, and never
 * contains secrets of a URL.
 */
export class PushError extends Error {
  override readonly name = 'PushError';

  constructor(reason: string) {
    super(shownReason(reason));
  }
}
