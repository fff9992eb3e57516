import type { ProcessState } from '../lib/process-usage.ts';

/** Checks without an answer after which a process counts as hung. */
const SILENT_CHECKS = 5;
/** CPU seconds between two checks: a runnable process that had less waits for a CPU, or for memory to be read. */
const LEAST_CPU_SECONDS = 0.1;

/**
 * Distinguishes a hung process from one that a busy machine keeps from answering. A process that waits for a CPU answers later;
 * one that is stopped, is blocked or runs in a loop does not.
 */
export class HangWatch {
  #silent = 0;
  #cpuSeconds = 0;

  /**
   * Notes a check at regular intervals.
   * @param isAnswered the process has answered what it was asked at the last check
   * @param state undefined without /proc
   * @returns whether it is hung
   */
  isHung(isAnswered: boolean, state: ProcessState | undefined): boolean {
    const had = (state?.cpuSeconds ?? 0) - this.#cpuSeconds;
    this.#cpuSeconds = state?.cpuSeconds ?? 0;
    if (isAnswered) this.#silent = 0;
    else if (state?.isRunnable !== true || had >= LEAST_CPU_SECONDS) this.#silent++;
    return this.#silent >= SILENT_CHECKS;
  }
}
