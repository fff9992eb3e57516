import type { ErrorCode } from '../errors.ts';
import type { DenialKind } from './denial.ts';
import type { Rejected } from './refusal-log.ts';

/** Classes of reasons for which clients are refused: `unread` is what could not be read, or was refused by the protocol. */
export type RefusalReason = ErrorCode | DenialKind | 'unread' | 'tls';

/** How many clients were refused for one reason. Those of HTTP ports are refused before their direction is known. */
export interface RefusalCount extends Pick<Rejected, 'direction' | 'protocol'> {
  readonly reason: RefusalReason;
  readonly count: number;
}

/** Counts refused clients by protocol, direction and class of reason, none of which a client can make up. */
export class RefusalCounts {
  readonly #counts = new Map<string, RefusalCount>();

  add({ direction, protocol }: Pick<Rejected, 'direction' | 'protocol'>, reason: RefusalReason): void {
    const key = `${direction} ${protocol} ${reason}`;
    const count = (this.#counts.get(key)?.count ?? 0) + 1;
    this.#counts.set(key, { ...(direction && { direction }), protocol, reason, count });
  }

  /** Since the node was started. */
  all(): readonly RefusalCount[] {
    return [...this.#counts.values()];
  }
}
