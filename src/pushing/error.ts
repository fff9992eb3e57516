import { shownReason } from '../protocols/outbound/shown.ts';

/**
 * A stream could not be pushed, or not any longer. The message tells the operator why, in the log; it may quote what the
 * destination says, and never has secrets of a URL in it.
 */
export class PushError extends Error {
  override readonly name = 'PushError';

  constructor(reason: string) {
    super(shownReason(reason));
  }
}
