type Pair = readonly [rtp: number, rtcp: number];

/** Kind of the packets of a channel. */
export interface ChannelUse {
  readonly track: number;
  readonly isRtcp: boolean;
}

const LAST_PAIR = 254;

/** Channels of one connection (RFC 2326 section 10.12): a pair for each track, for RTP and for RTCP. */
export class ChannelPairs {
  readonly #pairs = new Map<number, Pair>();
  readonly #uses = new Map<number, ChannelUse>();

  /**
   * Gives a track a pair: the wanted one where it is free, instead of one that it has.
   * @returns undefined when there are none left
   */
  add(track: number, wanted: Pair | undefined): Pair | undefined {
    for (const channel of this.#pairs.get(track) ?? []) this.#uses.delete(channel);
    this.#pairs.delete(track);
    const isFree = (pair: Pair): boolean => pair.every((channel) => !this.#uses.has(channel));
    const usual = Math.min(2 * track, LAST_PAIR);
    let pair = wanted ?? [usual, usual + 1];
    for (let first = 0; !isFree(pair); first += 2) {
      if (first > LAST_PAIR) return undefined;
      pair = [first, first + 1];
    }
    this.#pairs.set(track, pair);
    pair.forEach((channel, index) => this.#uses.set(channel, { track, isRtcp: index === 1 }));
    return pair;
  }

  of(track: number): Pair | undefined {
    return this.#pairs.get(track);
  }

  /** Undefined for a channel of no track. */
  use(channel: number): ChannelUse | undefined {
    return this.#uses.get(channel);
  }
}
