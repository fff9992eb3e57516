import { kilnError } from '../errors.ts';
import { clientOf } from '../lib/client-of.ts';

/** Sessions that have not connected yet, on this node: what strangers can make it hold, and what one of them can. */
const MAX_PENDING = 1000;
const MAX_PENDING_OF_ONE = 256;
/** Who has no more than so many is let in beyond that: a few who have many keep out themselves alone. */
const FEW = 4;
const MAX_PENDING_WITH_FEW = 2000;
/** Peers are connected within a second or two: how long one may take, however long one may be silent later. */
const MAX_CONNECT_MS = 10_000;

/** How long a peer is waited for. @param timeoutMs how long one may be silent */
export function connectTimeout(timeoutMs: number): number {
  return Math.min(timeoutMs, MAX_CONNECT_MS);
}

/** Counts sessions that are to connect, by the client that asked for them. */
export class PendingPeers {
  #all = 0;
  readonly #of = new Map<string, number>();

  /**
   * Counts a session that is to connect; call the answer when it did or will not.
   * @throws mediaUnavailable when too many are to, of this client or in all
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
