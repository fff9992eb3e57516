import { BoundedMap } from '../lib/bounded-map.ts';
import { clientOf } from '../lib/client-of.ts';
import { TokenBucket } from '../lib/token-bucket.ts';

/** Wrong credentials that a client may send at once, and the time after which it may send another one. */
const BURST = 20;
const REFILL_MS = 5000;
/** Limit of remembered clients; the one that was quiet longest is removed first. */
const MAX_CLIENTS = 10_000;

interface Client {
  readonly bucket: TokenBucket;
  /** Whether the limit was exceeded since the bucket was last full. */
  exceeded: boolean;
}

export interface Count {
  /** Milliseconds until the client may send another wrong credential; 0 within the limit. */
  readonly waitMs: number;
  /** Whether the client exceeds its limit for the first time. */
  readonly isNews: boolean;
}

/**
 * Counts wrong credentials by client, with a token bucket for each (`clientOf`).
 *
 * Only wrong credentials are counted and rejected. The right one always passes: otherwise a bad neighbour behind the same NAT
 * or balancer could lock the operator out. So guesses are still tried: the length of the token withstands them. The limit
 * makes each guess cost a delay or a connection of its own, and shows guessing in the log.
 */
export class WrongCredentials {
  readonly #clients = new BoundedMap<string, Client>(MAX_CLIENTS);

  /** Counts a wrong credential. @param now milliseconds of a monotonic clock */
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
