import type { Logger } from '../log/log.ts';
import { listenTcp, type TcpListener } from '../protocols/tcp.ts';

/** For a check that does not read its answer, or does not close its side. */
const PATIENCE_MS = 1000;

export interface AgentState {
  /** Why no new publishers and viewers should come; undefined: they may. */
  readonly away: string | undefined;
  /** 0 full to 1 idle. */
  readonly room: number;
}

/**
 * Answers HAProxy's agent checks (`agent-check`): each connection is told the share of newcomers that this node should
 * get, in percent of the weight that HAProxy's configuration gives it, and is closed. A full node keeps 1 %: if all were
 * without weight, nobody would be let in anywhere. What a check sends is not read.
 */
export function listenAgentCheck(
  host: string,
  port: number,
  state: () => AgentState,
  log: Logger,
): Promise<TcpListener> {
  return listenTcp({ host, port, log }, (socket) => {
    // who goes before the answer has gone
    socket.on('error', () => {});
    const late = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.on('close', () => clearTimeout(late));
    socket.resume();
    socket.end(`${answer(state())}\n`);
  });
}

function answer({ away, room }: AgentState): string {
  if (away !== undefined) return 'drain';
  return `ready up ${Math.max(1, Math.round(room * 100))}%`;
}
