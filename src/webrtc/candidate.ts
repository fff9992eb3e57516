import { isIPv4 } from 'node:net';
import type { IceCandidate } from '../config/values.ts';
import type { Transport } from '../lib/address.ts';
import type { IceSocket } from './addresses.ts';

export interface HostCandidate {
  readonly protocol: Transport;
  readonly address: string;
  readonly port: number;
  readonly foundation: string;
  readonly priority: number;
}

/** Transports and addresses that are offered to one peer. */
export interface TransportChoice {
  /** The only protocol; undefined for any. */
  readonly protocol: Transport | undefined;
  /** Configured candidates that the peer may learn. */
  readonly entries: readonly IceCandidate[];
}

/** Type preferences (RFC 8445 section 5.1.2.2, RFC 6544 section 4.2): UDP before TCP. */
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

/** Selects the candidates to offer to a peer. */
export function candidatesOn(
  candidates: readonly HostCandidate[],
  { protocol, entries }: TransportChoice,
): HostCandidate[] {
  return candidates.filter((candidate) => {
    const { address, port } = candidate;
    return (
      (protocol === undefined || candidate.protocol === protocol) &&
      entries.some((entry) => {
        const named =
          entry.address === address ||
          entry.address === (isIPv4(address) ? '*' : '::') ||
          (entry.address === '0.0.0.0' && isIPv4(address));
        return (
          named &&
          entry.protocol === candidate.protocol &&
          (entry.first === 0 || (port >= entry.first && port <= entry.last))
        );
      })
    );
  });
}

/** The candidate-attribute of RFC 8839 section 5.1, without `a=`. */
export function candidateLine({ protocol, address, port, foundation, priority }: HostCandidate): string {
  const line = `candidate:${foundation} 1 ${protocol.toUpperCase()} ${priority} ${address} ${port} typ host`;
  return protocol === 'tcp' ? `${line} tcptype passive` : line;
}
