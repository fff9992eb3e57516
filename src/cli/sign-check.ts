import { checkSignature, checkUse, type Signing } from '../access/policy/check.ts';
import { Denial } from '../access/denial.ts';
import type { Policy } from '../access/policy/policy.ts';
import { splitSignedUrl } from '../access/policy/signed-url.ts';
import { signature } from '../control-server/signature.ts';
import type { CheckWanted } from './sign-arguments.ts';

/** Result of checking a signed URL, in lines for an operator. */
export interface CheckedUrl {
  readonly isAccepted: boolean;
  readonly lines: readonly string[];
}

const CHILD = /\/[^/?]*(?:\.m4s|\.ts|chunklist[^/?]*\.m3u8)(?:\?|$)/;

/** @param now milliseconds since the epoch */
export function checkUrl(wanted: CheckWanted, now: number): CheckedUrl {
  const { url, signing, address, realAddress } = wanted;
  const lines: string[] = [];
  try {
    const policy = checkSignature(url, signing);
    lines.push(...describe(policy, now), ...leftOut(policy, wanted));
    checkUse(withKnownAddresses(policy, wanted), { address: address ?? '', realAddress: realAddress ?? '', now });
    return { isAccepted: true, lines: ['accepted', ...lines, ...aboutChildren(url)] };
  } catch (error) {
    if (!(error instanceof Denial)) throw error;
    const hint = error.kind === 'policySignature' ? signedTexts(url, signing) : [];
    return { isAccepted: false, lines: [`refused: ${error.message}`, ...hint, ...lines, ...aboutChildren(url)] };
  }
}

/** Drops limits of addresses that were not given: they are not checked. */
function withKnownAddresses(policy: Policy, { address, realAddress }: CheckWanted): Policy {
  return {
    ...policy,
    allowIp: address === undefined ? undefined : policy.allowIp,
    realIp: realAddress === undefined ? undefined : policy.realIp,
  };
}

function leftOut({ allowIp, realIp }: Policy, { address, realAddress }: CheckWanted): string[] {
  const options = [
    ...(allowIp !== undefined && address === undefined ? ['--ip'] : []),
    ...(realIp !== undefined && realAddress === undefined ? ['--real-ip'] : []),
  ];
  return options.map((option) => `not checked: the policy limits the address; ${option} ADDRESS checks one`);
}

function describe({ urlExpire, urlActivate, streamExpire }: Policy, now: number): string[] {
  return [
    `url_expire: ${when(urlExpire, now)}`,
    ...(urlActivate === undefined ? [] : [`url_activate: ${when(urlActivate, now)}`]),
    ...(streamExpire === undefined ? [] : [`stream_expire: ${when(streamExpire, now)}`]),
  ];
}

function when(time: number, now: number): string {
  const seconds = Math.round(Math.abs(time - now) / 1000);
  return `${new Date(time).toISOString()} (${time < now ? `${seconds} s ago` : `in ${seconds} s`})`;
}

/** Text that must be signed, and its signature with this key. */
function signedTexts(url: string, signing: Signing): string[] {
  const { text } = splitSignedUrl(url, signing);
  const other = signing.algorithm === 'sha1' ? 'sha256' : 'sha1';
  const isOther = matches(url, { ...signing, algorithm: other });
  return [
    `text to sign: ${text}`,
    `its signature: ${signature(signing.secretKey, text, signing.algorithm)} (${signing.algorithm})`,
    ...(isOther ? [`the URL is signed with ${other}: --algorithm, or Algorithm of the virtual host, differs`] : []),
  ];
}

function matches(url: string, signing: Signing): boolean {
  try {
    checkSignature(url, signing);
    return true;
  } catch {
    return false;
  }
}

/** Explains that only master playlists of HLS are signed. */
function aboutChildren(url: string): string[] {
  return CHILD.test(url)
    ? [
        'note: of LL-HLS and HLS only the URL of the master playlist is signed. The URLs in it carry a session, which ends ' +
          'with stream_expire; in OriginMode there are no sessions, and every client that knows them can load them.',
      ]
    : [];
}
