import { timingSafeEqual } from 'node:crypto';
import { isIP, type BlockList } from 'node:net';
import { Denial } from '../denial.ts';
import { hmac, type Algorithm } from '../../control-server/signature.ts';
import { canonicalAddress } from '../../lib/address.ts';
import { readPolicy, type Policy } from './policy.ts';
import { splitSignedUrl, type ParameterNames } from './signed-url.ts';
import { equivalentUrls } from './equivalent-urls.ts';

/** How URLs of a virtual host are signed. */
export interface Signing extends ParameterNames {
  readonly secretKey: string;
  readonly algorithm: Algorithm;
}

/** Use of a signed URL. */
export interface Use {
  /** Address of the connection. */
  readonly address: string;
  /** The client's own, as reported by trusted proxies. */
  readonly realAddress: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

const BASE64URL = /^[\w-]+={0,2}$/;

/**
 * Checks the signature of a URL, by any of the forms that its client may have been given.
 * @param ports as `equivalentUrls` takes them
 * @throws Denial policyMissing, policyMalformed, policySignature
 */
export function checkSignature(url: string, signing: Signing, ports?: readonly number[]): Policy {
  const { policy, signature, text } = splitSignedUrl(url, signing);
  const given = BASE64URL.test(signature) ? Buffer.from(signature, 'base64url') : Buffer.alloc(0);
  let isSigned = false;
  for (const spelling of equivalentUrls(text, ports)) {
    const expected = hmac(signing.algorithm, signing.secretKey, spelling);
    if (given.length !== expected.length) break;
    isSigned = timingSafeEqual(given, expected);
    if (isSigned) break;
  }
  if (!isSigned) throw new Denial('policySignature', 'the signature of the URL is not that of its text');
  return readPolicy(policy);
}

/**
 * Checks the conditions of a policy. The clock has no tolerance.
 * @throws Denial policyExpired, policyInactive, policyAddress
 */
export function checkUse(policy: Policy, { address, realAddress, now }: Use): void {
  const { urlExpire, urlActivate, streamExpire, allowIp, realIp } = policy;
  if (now > urlExpire) throw new Denial('policyExpired', `the URL expired at ${iso(urlExpire)}`);
  if (streamExpire !== undefined && now >= streamExpire)
    throw new Denial('policyExpired', `the time of its session ended at ${iso(streamExpire)}`);
  if (urlActivate !== undefined && now < urlActivate)
    throw new Denial('policyInactive', `the URL is not valid before ${iso(urlActivate)}`);
  if (allowIp !== undefined && !contains(allowIp, address))
    throw new Denial('policyAddress', 'the address of the connection is not in allow_ip');
  if (realIp !== undefined && !contains(realIp, realAddress))
    throw new Denial('policyAddress', 'the address of the client is not in real_ip');
}

/** An IPv4 address is also what IPv6 maps it to. */
function contains(networks: BlockList, given: string): boolean {
  const [plain = ''] = given.split('%', 1);
  if (isIP(plain) === 0) return false;
  const address = canonicalAddress(plain);
  if (isIP(address) === 6) return networks.check(address, 'ipv6');
  return networks.check(address, 'ipv4') || networks.check(`::ffff:${address}`, 'ipv6');
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
