import { UnavailableError, UnreachableError } from '#cluster';
import type { Refusal } from '../directory/stream-sender.ts';
import { OvtError, OvtSilenceError } from '../protocols/ovt/error.ts';
import { FULL } from '../protocols/ovt/message.ts';

/** Tests for an error that relays expect: a node rejects, does not answer, or is unreachable. */
export function isRelayFailure(error: unknown): error is Error {
  return error instanceof OvtError || error instanceof UnreachableError || error instanceof UnavailableError;
}

/** The reason of such an error. */
export function refusalOf(error: Error): Refusal {
  if (error instanceof UnreachableError) return 'unreachable';
  if (!(error instanceof OvtError) || error instanceof OvtSilenceError) return 'failed';
  if (error.code === FULL) return 'full';
  // an older version closes a connection without an answer if it does not know the request
  return error.code === undefined ? 'unknown' : 'failed';
}
