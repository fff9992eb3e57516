import { signature } from '../../control-server/signature.ts';
import type { Signing } from './check.ts';
import { withParameter } from './signed-url.ts';

/** A policy as JSON has it; times in milliseconds since the epoch, networks in CIDR notation. */
export interface PolicyFields {
  readonly url_expire: number;
  readonly url_activate?: number;
  readonly stream_expire?: number;
  readonly allow_ip?: string;
  readonly real_ip?: string;
}

/** Signs a URL, which has to name its port (docs/compatibility.md#signed-urls). */
export function signUrl(url: string, fields: PolicyFields, signing: Signing): string {
  const { policyQueryKeyName, signatureQueryKeyName, secretKey, algorithm } = signing;
  const policy = Buffer.from(JSON.stringify(fields)).toString('base64url');
  const text = withParameter(url, policyQueryKeyName, policy);
  return withParameter(text, signatureQueryKeyName, signature(secretKey, text, algorithm));
}
