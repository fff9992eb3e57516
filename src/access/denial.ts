import { kilnError, type KilnError } from '../errors.ts';

/** Classes of reasons, as they are counted. */
export type DenialKind =
  | 'webhookFailed'
  | 'webhookRefused'
  | 'policyMissing'
  | 'policyMalformed'
  | 'policySignature'
  | 'policyExpired'
  | 'policyInactive'
  | 'policyAddress';

/** Why a guard rejects a client: for the log, the counters and `npm run sign`, and never for the client. */
export class Denial extends Error {
  override readonly name = 'Denial';
  readonly kind: DenialKind;

  /** @param message without secrets: neither keys nor signatures */
  constructor(kind: DenialKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What the client gets, which does not tell it the reason. */
export function accessDenied(denial: Denial): KilnError {
  const error = kilnError('accessDenied');
  error.cause = denial;
  return error;
}
