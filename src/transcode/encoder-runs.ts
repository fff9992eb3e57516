import type { InputStream } from '../core/input-stream.ts';

/** A running ffmpeg, for statistics. */
export interface EncoderRun {
  readonly input: InputStream;
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  /** Seconds of media encoded. */
  readonly mediaSeconds: number;
  /** Seconds of queued input. */
  readonly queuedSeconds: number;
}

/** Counts the encoders of this node, running and ended. */
export class EncoderRuns {
  readonly #running = new Set<EncoderRun>();
  /** Seconds of media of ended runs. */
  readonly #mediaSeconds = new WeakMap<InputStream, number>();
  started = 0;
  /** Number of runs that ended unexpectedly. */
  died = 0;

  get running(): ReadonlySet<EncoderRun> {
    return this.#running;
  }

  /** Seconds of media that the encoders of a stream have encoded. */
  mediaSeconds(input: InputStream): number {
    let seconds = this.#mediaSeconds.get(input) ?? 0;
    for (const run of this.#running) if (run.input === input) seconds += run.mediaSeconds;
    return seconds;
  }

  /** Counts a started run. @returns function to call once when it has ended */
  begin(run: EncoderRun): () => void {
    this.#running.add(run);
    this.started++;
    return () => {
      this.#running.delete(run);
      this.#mediaSeconds.set(run.input, (this.#mediaSeconds.get(run.input) ?? 0) + run.mediaSeconds);
    };
  }
}
