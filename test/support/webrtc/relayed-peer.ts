import type { Message } from './signalling-client.ts';
import { UdpRelay, type WayMaker } from '../network/udp-relay.ts';

/** A host candidate over UDP, with the port of it. */
const UDP_CANDIDATE = /^(?:a=)?candidate:\S+ \d+ udp \d+ \S+ (\d+) typ host/i;
const CANDIDATE = /^(?:a=)?candidate:/;

/** What a peer is told of the server, and the relay that is its only way there. */
export interface Relayed<T> {
  readonly relay: UdpRelay;
  readonly description: T;
}

/**
 * Opens a relay in front of a media server, by what it says of itself (an answer of WHIP or WHEP, an offer). The server
 * is ICE-lite: it sends to wherever checks come from, so whoever knows no other candidate is reached through the relay
 * in both directions.
 * @throws Error when the description names no port for UDP
 */
export async function relayedSdp(sdp: string, ways: WayMaker): Promise<Relayed<string>> {
  const lines = sdp.split('\r\n');
  const relay = await UdpRelay.open(udpPort(lines), ways);
  return { relay, description: through(relay, lines).join('\r\n') };
}

/** The same with the `offer` message of WebSocket signalling. */
export async function relayedOffer(message: Message, ways: WayMaker): Promise<Relayed<Message>> {
  const { sdp, candidates = [] } = message;
  const lines = sdp?.sdp.split('\r\n') ?? [];
  const relay = await UdpRelay.open(udpPort([...lines, ...candidates.map(({ candidate }) => candidate)]), ways);
  const description = {
    ...message,
    sdp: { type: 'offer', sdp: through(relay, lines).join('\r\n') },
    candidates: candidates.flatMap((each) =>
      through(relay, [each.candidate]).map((candidate) => ({ ...each, candidate })),
    ),
  };
  return { relay, description };
}

function udpPort(lines: readonly string[]): number {
  const [port] = lines.flatMap((line) => UDP_CANDIDATE.exec(line)?.[1] ?? []);
  if (port === undefined) throw new Error('there is no candidate over UDP');
  return Number(port);
}

/** Candidates of the port that the relay leads to become the relay; others go. */
function through(relay: UdpRelay, lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    if (!CANDIDATE.test(line)) return [line];
    const port = UDP_CANDIDATE.exec(line)?.[1];
    return port === String(relay.server) ? [line.replace(/\S+ \d+ typ host/, `127.0.0.1 ${relay.port} typ host`)] : [];
  });
}
