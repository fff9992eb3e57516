import { kilnError } from '../errors.ts';
import { clientOf } from '../lib/client-of.ts';

/** Limits of sessions that have not connected yet, on this node and per client: unauthenticated clients can create them. */
const MAX_PENDING = 1000;
const MAX_PENDING_OF_ONE = 256;
/** Clients with fewer pending sessions may exceed MAX_PENDING, so that a few clients with many cannot lock out the others. */
const FEW = 4;
const MAX_PENDING_WITH_FEW = 2000;
/** Peers connect within a second or two, so this limit holds even where the timeout of a connected peer is longer. */
const MAX_CONNECT_MS = 10_000;

/** Time to wait for a peer to connect, in milliseconds. @param timeoutMs of a connected peer */
export function connectTimeout(timeoutMs: number): number {
  return Math.min(timeoutMs, MAX_CONNECT_MS);
}

/** Counts sessions that have not connected yet, by client. */
export class PendingPeers {
  #all = 0;
  readonly #of = new Map<string, number>();

  /**
   * Counts a session.
   * @returns undo, to call when the session has connected or failed
   * @throws mediaUnavailable when too many are pending, of this client or in all
   */
  add(address: string): () => void {
    const client = clientOf(address);
    const own = this.#of.get(client) ?? 0;
    const most = own < FEW ? MAX_PENDING_WITH_FEW : MAX_PENDING;
    if (this.#all >= most || own >= MAX_PENDING_OF_ONE) throw kilnError('mediaUnavailable');
    this.#all++;
    this.#of.set(client, own + 1);
    let pending = true;
    return () => {
      if (!pending) return;
      pending = false;
      this.#all--;
      const left = (this.#of.get(client) ?? 1) - 1;
      if (left === 0) this.#of.delete(client);
      else this.#of.set(client, left);
    };
  }
}
