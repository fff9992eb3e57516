/** Limits from which on a node is full; 0: no limit. */
export interface Limits {
  /** Percent of CPU, or of the event loop. */
  readonly load: number;
  /** Bits per second that it sends. */
  readonly bitrate: number;
  readonly viewers: number;
}

export interface NodeUse {
  /** 0 idle to 1 busy. */
  readonly load: number;
  /** Bits per second sent. */
  readonly bitrate: number;
  readonly viewers: number;
}

/** Weight of a new measurement: a peak of a second or two, as when viewers join, does not make a node full. */
const NEW = 0.3;
/** Part of a limit below which a full node has room again: with the limit itself, its state would change every second. */
const ROOM = 0.9;

/** Decides whether a node is full, by measurements once a second. */
export class NodeLimits {
  readonly #limits: Limits;
  #use: NodeUse = { load: 0, bitrate: 0, viewers: 0 };
  #reasons: readonly string[] = [];

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  add({ load, bitrate, viewers }: NodeUse): void {
    const { load: oldLoad, bitrate: oldBitrate } = this.#use;
    this.#use = { load: smooth(oldLoad, load), bitrate: smooth(oldBitrate, bitrate), viewers };
    const part = this.full === undefined ? 1 : ROOM;
    this.#reasons = this.#shares().flatMap(([text, share]) => (share >= part ? [text] : []));
  }

  /** Limits that are reached, as text; undefined while there is room. */
  get full(): string | undefined {
    return this.#reasons.length === 0 ? undefined : this.#reasons.join(', ');
  }

  /** Remaining part of the scarcest resource, 0 to 1. */
  get room(): number {
    return Math.max(0, 1 - Math.max(0, ...this.#shares().map(([, share]) => share)));
  }

  #shares(): [text: string, share: number][] {
    const { load, bitrate, viewers } = this.#limits;
    const use = this.#use;
    const percent = Math.round(use.load * 100);
    const mbits = (bits: number): string => (bits / 1e6).toFixed(1);
    return [
      ...share(`load ${percent} % of at most ${load} %`, use.load * 100, load),
      ...share(`${mbits(use.bitrate)} Mbit/s sent of at most ${mbits(bitrate)}`, use.bitrate, bitrate),
      ...share(`${use.viewers} viewers of at most ${viewers}`, use.viewers, viewers),
    ];
  }
}

function smooth(old: number, next: number): number {
  return old + NEW * (next - old);
}

function share(text: string, used: number, limit: number): [string, number][] {
  return limit === 0 ? [] : [[text, used / limit]];
}
