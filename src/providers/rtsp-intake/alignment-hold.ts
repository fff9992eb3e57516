import { SILENT_WAIT_MS } from '../rtp/alignment.ts';
import type { LaneEvent } from '../rtp/lane.ts';

/** Longest wait for sender reports, which come every few seconds. */
const LONGEST_MS = 2500;
const MAX_EVENTS = 2048;
const MAX_BYTES = 16 * 1024 * 1024;

export interface AlignmentHoldOptions {
  /**
   * Whether the tracks are aligned.
   * @param waitsForSilent whether tracks without packets may still begin
   */
  readonly isAligned: (waitsForSilent: boolean) => boolean;
  /** Ends the wait for silent tracks; called at most once, before held events pass. */
  readonly onSilent: () => void;
  readonly output: (event: LaneEvent) => void;
}

/** Holds events until the tracks are aligned, or the wait is over. */
export class AlignmentHold {
  readonly #options: AlignmentHoldOptions;
  #held: LaneEvent[] | undefined = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #waitsForSilent = true;

  constructor(options: AlignmentHoldOptions) {
    this.#options = options;
  }

  push(event: LaneEvent): void {
    const held = this.#held;
    if (held === undefined) return this.#options.output(event);
    held.push(event);
    this.#bytes += event.data.length;
    this.#timer ??= setTimeout(() => this.#waitedForSilent(), SILENT_WAIT_MS).unref();
    if (held.length >= MAX_EVENTS || this.#bytes >= MAX_BYTES) this.#release();
    else this.#releaseAligned();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#held = this.#held && [];
  }

  #waitedForSilent(): void {
    this.#waitsForSilent = false;
    this.#timer = setTimeout(() => this.#release(), LONGEST_MS - SILENT_WAIT_MS).unref();
    this.#options.onSilent();
    this.#releaseAligned();
  }

  #releaseAligned(): void {
    if (this.#options.isAligned(this.#waitsForSilent)) this.#release();
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    clearTimeout(this.#timer);
    for (const event of held) this.#options.output(event);
  }
}
