import type { Transport } from '../config/values.ts';
import type { IceSocket } from './addresses.ts';

export interface HostCandidate {
  readonly protocol: Transport;
  readonly address: string;
  readonly port: number;
  readonly foundation: string;
  readonly priority: number;
}

/** Type preferences (RFC 8445 section 5.1.2.2, RFC 6544 section 4.2): a host over TCP comes after one over UDP. */
const UDP_PREFERENCE = 126;
const TCP_PREFERENCE = 90;
/** Direction preference of a passive TCP candidate (RFC 6544 section 4.2), in the three bits above the others. */
const PASSIVE = 4 << 13;
const COMPONENT = 256 - 1;

/** One candidate for each announced address of each socket. */
export function hostCandidates(sockets: readonly IceSocket[]): HostCandidate[] {
  const candidates: HostCandidate[] = [];
  for (const { protocol, port, announced } of sockets) {
    for (const address of announced) {
      const rank = candidates.length;
      const [type, local] =
        protocol === 'udp' ? [UDP_PREFERENCE, 65535 - rank] : [TCP_PREFERENCE, PASSIVE + 8191 - rank];
      const priority = type * 2 ** 24 + local * 256 + COMPONENT;
      candidates.push({ protocol, address, port, foundation: `${rank + 1}`, priority });
    }
  }
  return candidates;
}

/** The candidate-attribute of RFC 8839 section 5.1, without `a=`. */
export function candidateLine({ protocol, address, port, foundation, priority }: HostCandidate): string {
  const line = `candidate:${foundation} 1 ${protocol.toUpperCase()} ${priority} ${address} ${port} typ host`;
  return protocol === 'tcp' ? `${line} tcptype passive` : line;
}
