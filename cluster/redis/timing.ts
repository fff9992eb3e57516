/** Times in milliseconds. */
export interface Timing {
  /** How long a lease, or the row of a node, is valid without being renewed. */
  readonly ttl: number;
  /** How often both are renewed. */
  readonly beat: number;
  /** How long a command may take. */
  readonly command: number;
  /**
   * How long only previous holders may claim after Redis has lost its content: as long as their leases last, and then a
   * little for those that were cut off.
   */
  readonly grace: number;
  /** How long a lost node is listed. */
  readonly forget: number;
}

const TIMING: Timing = { ttl: 5000, beat: 1000, command: 1500, grace: 6500, forget: 600_000 };

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

/** How long a node that is not heard of has to answer whether it lives. A process that stood still may go on in that time. */
export function askingMs({ ttl }: Timing): number {
  return ttl * 0.9;
}
