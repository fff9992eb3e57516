import { open, type FileHandle } from 'node:fs/promises';
import type { MediaTrack, Track } from '../../core/track.ts';
import type { ChannelWriter } from '../scheduled/channel-writer.ts';
import type { ChannelClock } from '../scheduled/clock.ts';
import { StepTimer } from '../scheduled/step-timer.ts';
import { SlatePass } from './slate-pass.ts';
import type { Slate } from './slates.ts';

/** Longest and shortest pause between two steps. */
const LOOK_MS = 250;
const STEP_MS = 4;
/** A slate begins no further in the past than this: it is written in a burst up to the present. */
const CAUGHT_UP_MS = 2000;
/** Share by which a slate is slower than time where the stream is ahead of it, as after a burst of its publisher. */
const SLOWER = 0.03;

export interface SlateShowOptions {
  readonly slate: Slate;
  readonly frameMs: number;
  readonly clock: ChannelClock;
  /** Called when the slate cannot be read any more. */
  readonly onFailure: (error: Error) => void;
}

/** An opened slate: plays in a loop, without encoding, from `start` to `close`. */
export class SlateShow {
  readonly #options: SlateShowOptions;
  readonly #file: FileHandle;
  readonly #timer: StepTimer;
  #writer: ChannelWriter | undefined;
  /** Tracks that the stream has beside those of the slate. */
  #beside: readonly Track[] = [];
  #pass: SlatePass;
  #next: SlatePass | undefined;
  /** Monotonic milliseconds at time 0 of the pass: on the timeline of the stream, and when it is due. */
  #shownFrom = 0;
  #dueFrom = 0;
  #closed = false;

  /** @throws MediaError, errors of the system */
  static async open(options: SlateShowOptions): Promise<SlateShow> {
    const file = await open(options.slate.path);
    try {
      const show = new SlateShow(options, file);
      await show.#pass.fill();
      return show;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  private constructor(options: SlateShowOptions, file: FileHandle) {
    this.#options = options;
    this.#file = file;
    this.#pass = this.#newPass();
    this.#timer = new StepTimer(options.clock, () => this.#step());
  }

  /**
   * @param from monotonic milliseconds on the timeline of the stream where it ended
   * @param beside tracks of events that stay
   */
  start(writer: ChannelWriter, from: number, beside: readonly Track[]): void {
    const now = this.#options.clock.monotonic();
    this.#writer = writer;
    this.#beside = beside;
    this.#shownFrom = now - from > CAUGHT_UP_MS ? now : from;
    this.#dueFrom = Math.min(this.#shownFrom, now);
    this.#begin(writer);
    this.#step();
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer.close();
    // nothing is lost with a file that was only read
    void this.#file.close().catch(() => undefined);
  }

  #newPass(): SlatePass {
    const { slate, frameMs } = this.#options;
    return new SlatePass(this.#file, slate.tracks as readonly MediaTrack[], frameMs);
  }

  #begin(writer: ChannelWriter): void {
    writer.begin([...this.#pass.tracks, ...this.#beside], this.#shownFrom, this.#shownFrom);
  }

  #step(): void {
    const writer = this.#writer;
    if (writer === undefined || this.#closed) return;
    const now = this.#options.clock.monotonic();
    const passed = this.#timer.begin(now);
    this.#dueFrom += Math.max(0, Math.min(this.#shownFrom - this.#dueFrom, passed * SLOWER));
    for (;;) {
      const { queue } = this.#pass;
      const unit = queue.next;
      if (unit === undefined) {
        if (!this.#turnOver(writer)) break;
        continue;
      }
      if (this.#dueFrom + unit.at > now + STEP_MS) break;
      writer.write(unit);
      // a reader may have ended the stream
      if (this.#closed) return;
      queue.take();
    }
    this.#fill(this.#pass);
    if (this.#pass.length !== undefined) this.#fill((this.#next ??= this.#newPass()));
    const due = this.#pass.queue.next;
    const wait = due === undefined ? LOOK_MS : this.#dueFrom + due.at - now;
    this.#timer.arm(Math.max(STEP_MS, Math.min(LOOK_MS, wait)));
  }

  /** Goes on with the next pass when the present one is over. @returns whether it did */
  #turnOver(writer: ChannelWriter): boolean {
    const { length } = this.#pass;
    if (length === undefined || this.#next?.queue.next === undefined) return false;
    this.#pass = this.#next;
    this.#next = undefined;
    this.#shownFrom += length;
    this.#dueFrom += length;
    this.#begin(writer);
    return !this.#closed;
  }

  #fill(pass: SlatePass): void {
    const wasEmpty = pass.queue.next === undefined;
    pass.fill().then(
      () => {
        if (wasEmpty && !this.#closed) this.#timer.wake();
      },
      (error: unknown) => {
        if (!this.#closed) this.#options.onFailure(error as Error);
      },
    );
  }
}
