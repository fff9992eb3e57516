/** Times in milliseconds. */
export interface Timing {
  /** Time to live of the lease of a node, and with it of all its claims, without a beat. */
  readonly ttl: number;
  /** Time between two beats. */
  readonly beat: number;
  /** Timeout of a command. */
  readonly command: number;
  /**
   * How long only previous holders may claim after Redis has lost its content: as long as their leases last, and then a
   * little for those that were cut off.
   */
  readonly grace: number;
  /** Time for which a lost node is listed. */
  readonly forget: number;
}

/**
 * A beat that is not answered, and the question to the other nodes whether they have no Redis either, are over before a
 * lease ends: beat + 2 command < validity.
 */
const TIMING: Timing = { ttl: 2000, beat: 400, command: 700, grace: 4000, forget: 600_000 };

/** The times of a cluster, the same on all nodes; tests use shorter ones. */
export function timingOf(given: Partial<Timing> = {}): Timing {
  const timing = { ...TIMING, ...given };
  return { ...timing, grace: Math.max(timing.grace, timing.ttl + timing.beat) };
}

/**
 * How long a lease is valid, counted from before its renewal was sent. It ends before it expires in Redis, so the owner
 * stops before another node can begin.
 */
export function validity({ ttl }: Timing): number {
  return ttl * 0.95;
}

/** Time in which a silent node has to accept a connection: its host may be cut off for so long. */
export function connectingMs({ ttl }: Timing): number {
  return ttl * 0.4;
}

/** Time in which it has to answer then. A suspended process may resume until then. */
export function askingMs({ ttl }: Timing): number {
  return ttl * 0.9;
}
