import { isIP } from 'node:net';
import { parse, type MediaDescription, type SessionDescription } from 'sdp-transform';
import { canonicalAddress } from '../../lib/address.ts';
import { SdpError } from '../remote-description.ts';
import type { IceCredentials, RemoteCandidate } from './ice-checks.ts';

export interface RemoteIce extends IceCredentials {
  /** Addresses for UDP, at most `MAX_CANDIDATES`. */
  readonly candidates: readonly RemoteCandidate[];
}

const MAX_CANDIDATES = 16;
const RTP_COMPONENT = 1;

/**
 * Reads where the media of an answer go: credentials and candidates (RFC 8839) of its first section that has them. Names of hosts
 * and candidates for TCP are left out.
 * @throws SdpError without credentials
 */
export function readRemoteIce(sdp: string): RemoteIce {
  let session: SessionDescription;
  try {
    session = parse(sdp);
  } catch (error) {
    throw new SdpError((error as Error).message);
  }
  const carrying = session.media.find(({ iceUfrag }) => iceUfrag !== undefined);
  const usernameFragment = carrying?.iceUfrag ?? session.iceUfrag;
  const password = carrying?.icePwd ?? session.icePwd;
  if (usernameFragment === undefined || password === undefined) throw new SdpError('there are no ICE credentials');
  const candidates = [carrying, ...session.media].flatMap((section) => candidatesOf(section?.candidates));
  const distinct = new Map(candidates.map((candidate) => [`${candidate.address} ${candidate.port}`, candidate]));
  return {
    usernameFragment: String(usernameFragment),
    password: String(password),
    candidates: [...distinct.values()].slice(0, MAX_CANDIDATES),
  };
}

function candidatesOf(candidates: MediaDescription['candidates'] = []): RemoteCandidate[] {
  return candidates.flatMap(({ component, transport, ip, port, priority }) => {
    const isUsable = component === RTP_COMPONENT && String(transport).toLowerCase() === 'udp' && isIP(String(ip)) !== 0;
    if (!isUsable || !(port > 0 && port < 65_536)) return [];
    return [{ address: canonicalAddress(String(ip)), port, priority: Number(priority) || 0 }];
  });
}
