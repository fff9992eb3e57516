import { clientOf } from '../lib/client-of.ts';

/** Wrong credentials that a client may have in a row, and how often one more. */
const BURST = 20;
const REFILL_MS = 5000;
/** Clients that are remembered, the one that was quiet longest forgotten first. */
const MAX_CLIENTS = 10_000;

interface Bucket {
  /** When all of its tokens are there again. */
  fullAt: number;
  /** Since it was full last. */
  exceeded: boolean;
}

/** Wrong credentials of one client. */
export interface Count {
  /** Milliseconds until the client may have another wrong credential; 0 while it is within the limit. */
  readonly waitMs: number;
  /** Whether the client had kept within the limit until now. */
  readonly isNews: boolean;
}

/**
 * How many wrong credentials came from whom: a bucket of tokens for each client, as `clientOf` tells them apart.
 *
 * Only wrong credentials are counted, and only they are refused. Whoever has the right one passes however many
 * wrong ones came from the same address: behind a NAT or a balancer that hides its clients a bad neighbour would
 * lock the operator out otherwise. A guess is still tried, then: what withstands guessing is the length of the token.
 * The limit makes each guess cost a delay or a connection of its own, and shows in the log that somebody guesses.
 */
export class WrongCredentials {
  readonly #buckets = new Map<string, Bucket>();

  /**
   * Counts a wrong credential.
   * @param now of a monotonic clock, in milliseconds
   */
  count(address: string, now: number): Count {
    const client = clientOf(address);
    const bucket = this.#buckets.get(client) ?? { fullAt: now, exceeded: false };
    this.#buckets.delete(client);
    if (this.#buckets.size >= MAX_CLIENTS) this.#buckets.delete(this.#buckets.keys().next().value as string);
    this.#buckets.set(client, bucket);
    if (bucket.fullAt <= now) {
      bucket.fullAt = now;
      bucket.exceeded = false;
    }
    const waitMs = bucket.fullAt - now - (BURST - 1) * REFILL_MS;
    if (waitMs <= 0) {
      bucket.fullAt += REFILL_MS;
      return { waitMs: 0, isNews: false };
    }
    const isNews = !bucket.exceeded;
    bucket.exceeded = true;
    return { waitMs, isNews };
  }
}
