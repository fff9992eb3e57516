import type { types } from 'mediasoup';
import { candidateLine, type HostCandidate } from '../../webrtc/candidate.ts';

export const FRAGMENT_TYPE = 'application/trickle-ice-sdpfrag';

/**
 * Reads the ICE credentials of a fragment (RFC 8840 section 9). Candidates are ignored: ICE-lite learns the peer's
 * addresses from its checks.
 */
export function parseFragment(fragment: string): { ufrag?: string; pwd?: string } {
  const ufrag = /^a=ice-ufrag:([A-Za-z0-9+/]{4,256})\s*$/m.exec(fragment)?.[1];
  const pwd = /^a=ice-pwd:([A-Za-z0-9+/]{22,256})\s*$/m.exec(fragment)?.[1];
  return { ...(ufrag === undefined ? {} : { ufrag }), ...(pwd === undefined ? {} : { pwd }) };
}

/** Whether a text consists of lines of the form `type=value`. */
export function isFragment(fragment: string): boolean {
  const lines = fragment.split(/\r?\n/).filter((line) => line !== '');
  return lines.length > 0 && lines.every((line) => /^[a-z]=/.test(line));
}

/** Writes this end's new credentials and all its candidates. */
export function writeFragment(
  ice: types.IceParameters,
  media: readonly { readonly kind: string; readonly mid: string }[],
  candidates: readonly HostCandidate[],
): string {
  const lines = [
    'a=ice-lite',
    'a=ice-options:trickle',
    `a=ice-ufrag:${ice.usernameFragment}`,
    `a=ice-pwd:${ice.password}`,
    `a=group:BUNDLE ${media.map(({ mid }) => mid).join(' ')}`,
  ];
  const [first] = media;
  if (first !== undefined) {
    lines.push(`m=${first.kind} 9 UDP/TLS/RTP/SAVPF 0`, `a=mid:${first.mid}`);
    lines.push(...candidates.map((candidate) => `a=${candidateLine(candidate)}`), 'a=end-of-candidates');
  }
  return `${lines.join('\r\n')}\r\n`;
}
