import type { Packet } from '../../core/packet.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { Task } from '../../tasks/kind.ts';

/** After a silence of this length an end interrupts nothing. */
const SILENCE_MS = 2000;
/** Longest wait for a key frame: x264 makes one every 250 frames, 10.4 s at 24 frames a second. */
const KEY_WITHIN_MS = 15_000;

/**
 * Ends the stream of a run that is handed over right before a key frame, with which the standby node continues.
 * Without video it ends before the next packet, in silence at once.
 */
export class Departure {
  readonly #task: Pick<Task, 'handsOver' | 'signal'>;
  readonly #onLeft: (next: Packet) => void;
  #silence: Watchdog | undefined;
  #hasVideo = false;
  #leave: (() => void) | undefined;
  #late: Watchdog | undefined;

  /** @param onLeft called with the first packet after the end */
  constructor(task: Pick<Task, 'handsOver' | 'signal'>, onLeft: (next: Packet) => void = () => undefined) {
    this.#task = task;
    this.#onLeft = onLeft;
  }

  /** Whether a packet may be written. To be called for each packet, in order. */
  passes(packet: Packet): boolean {
    const { signal } = this.#task;
    const isVideo = packet.track.type === 'video';
    if (this.#leave !== undefined && !signal.aborted && (isVideo ? packet.key : !this.#hasVideo)) {
      this.#leave();
      if (signal.aborted) this.#onLeft(packet);
    }
    if (signal.aborted) return false;
    if (this.#silence === undefined) this.#begin();
    else this.#silence.heard();
    this.#hasVideo ||= isVideo;
    return true;
  }

  close(): void {
    this.#silence?.close();
    this.#late?.close();
    this.#silence = this.#late = undefined;
  }

  #begin(): void {
    this.#task.handsOver((leave) => {
      this.#leave = leave;
      this.#late?.close();
      this.#late = new Watchdog(KEY_WITHIN_MS, leave).unref();
    });
    this.#silence = new Watchdog(SILENCE_MS, () => {
      this.#silence = undefined;
      this.#hasVideo = false;
      this.#task.handsOver(undefined);
      this.#leave?.();
    }).unref();
  }
}
