import { SILENT_WAIT_MS } from '../rtp/alignment.ts';
import type { LaneEvent } from '../rtp/lane.ts';

/** Reports come every few seconds; who sends none until then is taken as it comes. */
const LONGEST_MS = 2500;
const MAX_EVENTS = 2048;
const MAX_BYTES = 16 * 1024 * 1024;

export interface AlignmentHoldOptions {
  /**
   * Whether the tracks have told how they are to each other.
   * @param waitsForSilent those of which nothing has come may still come, and tell
   */
  readonly isAligned: (waitsForSilent: boolean) => boolean;
  /** Tracks of which nothing has come are waited for no longer; called once at most, before anything goes on that was held. */
  readonly onSilent: () => void;
  readonly output: (event: LaneEvent) => void;
}

/** Holds back what comes until the tracks have told how they are to each other, or were waited for. */
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

  /** Lets go of what is held. Idempotent. */
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
