import type { MediaUnit } from '../intake/media-unit.ts';

/** Wait for all qualities: browsers begin with the lowest, and add others when the bandwidth allows. */
const WAIT_MS = 6000;
const MAX_UNITS = 1024;
const MAX_BYTES = 8 * 1024 * 1024;

export interface LayerGateOptions {
  readonly pass: (unit: MediaUnit) => void;
  /** Called when the wait is over, before held units pass. */
  readonly onWaited: () => void;
}

/**
 * Holds a stream with several qualities of video until all have begun, because output profiles are decided at its start.
 * Waits for a limited time, and holds a limited amount.
 */
export class LayerGate {
  readonly #expected: number;
  readonly #options: LayerGateOptions;
  readonly #seen = new Set<number>();
  #held: MediaUnit[] | undefined;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param expected number of video tracks */
  constructor(expected: number, options: LayerGateOptions) {
    this.#expected = expected;
    this.#options = options;
    this.#held = expected > 1 ? [] : undefined;
  }

  push(unit: MediaUnit): void {
    if (this.#held === undefined) return this.#options.pass(unit);
    this.#held.push(unit);
    this.#bytes += unit.data.length;
    if (unit.track.type === 'video') {
      this.#seen.add(unit.track.id);
      this.#timer ??= setTimeout(() => this.#waited(), WAIT_MS).unref();
    }
    const isFull = this.#held.length >= MAX_UNITS || this.#bytes >= MAX_BYTES;
    if (isFull || this.#seen.size === this.#expected) this.#open();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#held = undefined;
  }

  #waited(): void {
    this.#options.onWaited();
    this.#open();
  }

  #open(): void {
    clearTimeout(this.#timer);
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const unit of held) this.#options.pass(unit);
  }
}
