import { setTimeout as delay } from 'node:timers/promises';
import { BackOff } from '../lib/back-off.ts';
import type { TaskProgress } from './progress.ts';

const LONGEST_PAUSE_MS = 30_000;

interface Leftover {
  readonly progress: TaskProgress;
  isBeingSaved: boolean;
}

/** Progress of a task that a run on this node left, and that could not be saved when the run ended. */
export class UnsavedProgress {
  readonly #save: (progress: TaskProgress) => Promise<void>;
  readonly #onFailure: (error: Error) => void;
  #leftover: Leftover | undefined;

  /**
   * @param save writes progress into the definition
   * @param onFailure called when that failed and will be tried again
   */
  constructor(save: (progress: TaskProgress) => Promise<void>, onFailure: (error: Error) => void) {
    this.#save = save;
    this.#onFailure = onFailure;
  }

  get progress(): TaskProgress | undefined {
    return this.#leftover?.progress;
  }

  set(progress: TaskProgress | undefined): void {
    this.#leftover = progress && { progress, isBeingSaved: false };
  }

  /**
   * Another node owns the task, which makes earlier progress of this node obsolete. Only that the task is complete has
   * to be saved: the owner ends it then, and deletes the definition.
   */
  onOwner(fence: number): void {
    const leftover = this.#leftover;
    if (leftover?.progress.over === true) void this.#saveOver(leftover);
    else if (leftover !== undefined && leftover.progress.fence < fence) this.#leftover = undefined;
  }

  /** Tries until it is saved, or no longer wanted. */
  async #saveOver(leftover: Leftover): Promise<void> {
    if (leftover.isBeingSaved) return;
    leftover.isBeingSaved = true;
    const backOff = new BackOff(LONGEST_PAUSE_MS);
    while (this.#leftover === leftover) {
      try {
        await this.#save(leftover.progress);
        if (this.#leftover === leftover) this.#leftover = undefined;
      } catch (error) {
        this.#onFailure(error as Error);
        await delay(backOff.next(), undefined, { ref: false });
      }
    }
  }
}
