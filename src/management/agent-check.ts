import type { Logger } from '../log/log.ts';
import { listenTcp, type TcpListener } from '../protocols/tcp.ts';

/** For clients that do not read the answer, or do not close their side. */
const TIMEOUT_MS = 1000;

export interface AgentState {
  /** Reason to send no new publishers and viewers; undefined: they may come. */
  readonly away: string | undefined;
  /** From 0 (full) to 1 (idle). */
  readonly room: number;
}

/**
 * Answers HAProxy's agent checks (`agent-check`): sends each connection the share of new clients that this node should get, in
 * percent of the weight that HAProxy's configuration gives it, and closes the connection. A full node keeps 1 %: if all nodes
 * had no weight, no client would be admitted anywhere. Bytes from the client are ignored.
 */
export function listenAgentCheck(
  host: string,
  port: number,
  state: () => AgentState,
  log: Logger,
): Promise<TcpListener> {
  return listenTcp({ host, port, log }, (socket) => {
    socket.on('error', () => {});
    const late = setTimeout(() => socket.destroy(), TIMEOUT_MS);
    socket.on('close', () => clearTimeout(late));
    socket.resume();
    socket.end(`${answer(state())}\n`);
  });
}

function answer({ away, room }: AgentState): string {
  if (away !== undefined) return 'drain';
  return `ready up ${Math.max(1, Math.round(room * 100))}%`;
}
