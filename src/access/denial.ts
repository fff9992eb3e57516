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
  | 'policyAddress'
  | 'tokenMissing'
  | 'tokenMalformed'
  | 'tokenKeys'
  | 'tokenSignature'
  | 'tokenExpired'
  | 'tokenInactive'
  | 'tokenClaims'
  | 'tokenPermission'
  | 'revoked';

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

/** Error for the client, which does not contain the reason. */
export function accessDenied(denial: Denial): KilnError {
  const error = kilnError('accessDenied');
  error.cause = denial;
  return error;
}
