import type { DrmKey } from '../../config/drm-info.ts';

/** Tracks lag behind the newest segment by few segments. */
const MAX_SPANS = 64;

interface Span {
  /** Media sequence number of the first segment. */
  readonly from: number;
  /** undefined: in clear. */
  readonly key: DrmKey | undefined;
}

/** Keys of one stream by segment: the same for all tracks. */
export class KeySchedule {
  /** Newest last. */
  #spans: readonly Span[];

  /** @param first undefined for a stream that begins in clear */
  constructor(first: DrmKey | undefined) {
    this.#spans = [{ from: -Infinity, key: first }];
  }

  /** Key of the newest segments; undefined while they are in clear. */
  get newest(): DrmKey | undefined {
    return (this.#spans.at(-1) as Span).key;
  }

  /** Key of a segment; undefined where it is in clear. */
  at(msn: number): DrmKey | undefined {
    return (this.#spans.findLast(({ from }) => from <= msn) ?? (this.#spans[0] as Span)).key;
  }

  /** Whether a segment has another key than the one before it. */
  changesAt(msn: number): boolean {
    return this.#spans.some(({ from }) => from === msn);
  }

  /** Sets the key of a segment and those after it. */
  change(key: DrmKey, from: number): void {
    this.#spans = [...this.#spans.filter((span) => span.from < from), { from, key }].slice(-MAX_SPANS);
  }
}
