import { BoundedMap } from '../lib/bounded-map.ts';
import { clientOf } from '../lib/client-of.ts';
import { TokenBucket } from '../lib/token-bucket.ts';

/** Wrong credentials that a client may have in a row, and how often one more. */
const BURST = 20;
const REFILL_MS = 5000;
/** Clients that are remembered, the one that was quiet longest forgotten first. */
const MAX_CLIENTS = 10_000;

interface Client {
  readonly bucket: TokenBucket;
  /** Has exceeded the limit since its bucket was full last. */
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
  readonly #clients = new BoundedMap<string, Client>(MAX_CLIENTS);

  /**
   * Counts a wrong credential.
   * @param now of a monotonic clock, in milliseconds
   */
  count(address: string, now: number): Count {
    const key = clientOf(address);
    const client = this.#clients.get(key) ?? { bucket: new TokenBucket(BURST, REFILL_MS), exceeded: false };
    this.#clients.set(key, client);
    if (client.bucket.isFull(now)) client.exceeded = false;
    const waitMs = client.bucket.waitMs(now);
    if (client.bucket.take(now)) return { waitMs, isNews: false };
    const isNews = !client.exceeded;
    client.exceeded = true;
    return { waitMs, isNews };
  }
}
