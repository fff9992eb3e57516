/** Counters of a connection since it began, in packets. */
export const LINK_COUNTS = ['packets', 'lost', 'retransmitted', 'dropped', 'belated', 'undecryptable'] as const;
export type LinkCounts = Readonly<Record<(typeof LINK_COUNTS)[number], number>>;

/** How the network of a connection fares at present. */
export interface LinkState {
  /** Smoothed round-trip time, in milliseconds. */
  readonly rttMs: number;
  /** Estimated capacity, in bits per second; 0 while unknown. */
  readonly capacity: number;
  /** Media in the buffer, in milliseconds: of a receiver what it cannot play yet, of a sender what was not acknowledged. */
  readonly bufferedMs: number;
}

/** Figures of one connection in the direction of its media. */
export interface LinkFigures extends LinkState {
  readonly counts: LinkCounts;
}

/** A connection whose transport sends lost packets again, and reports how that goes: SRT. */
export interface Link {
  /** Undefined until its transport has reported them. */
  readonly figures: LinkFigures | undefined;
}

export const NO_COUNTS: LinkCounts = {
  packets: 0,
  lost: 0,
  retransmitted: 0,
  dropped: 0,
  belated: 0,
  undecryptable: 0,
};

export function plusCounts(a: LinkCounts, b: LinkCounts): LinkCounts {
  return {
    packets: a.packets + b.packets,
    lost: a.lost + b.lost,
    retransmitted: a.retransmitted + b.retransmitted,
    dropped: a.dropped + b.dropped,
    belated: a.belated + b.belated,
    undecryptable: a.undecryptable + b.undecryptable,
  };
}

/** The worse of two connections in each respect. */
export function worseState(a: LinkState, b: LinkState): LinkState {
  const capacities = [a.capacity, b.capacity].filter((capacity) => capacity > 0);
  return {
    rttMs: Math.max(a.rttMs, b.rttMs),
    capacity: capacities.length === 0 ? 0 : Math.min(...capacities),
    bufferedMs: Math.max(a.bufferedMs, b.bufferedMs),
  };
}

/** The links of one direction of a stream. */
export class Links {
  /** Links that have come so far. */
  soFar = 0;
  /** Sums of the links that have gone. */
  #gone = NO_COUNTS;
  readonly #links = new Set<Link>();

  /** Links at present. */
  get size(): number {
    return this.#links.size;
  }

  add(link: Link): void {
    this.#links.add(link);
    this.soFar++;
  }

  /** Keeps what was counted. */
  remove(link: Link): void {
    if (this.#links.delete(link) && link.figures !== undefined)
      this.#gone = plusCounts(this.#gone, link.figures.counts);
  }

  /** Sums of all links, those that have gone too. */
  get counts(): LinkCounts {
    let sum = this.#gone;
    for (const { figures } of this.#links) if (figures !== undefined) sum = plusCounts(sum, figures.counts);
    return sum;
  }

  /** The worst of the links at present, in each respect; undefined when none has figures. */
  get worst(): LinkState | undefined {
    let worst: LinkState | undefined;
    for (const { figures } of this.#links)
      if (figures !== undefined) worst = worst === undefined ? figures : worseState(worst, figures);
    return worst;
  }
}
