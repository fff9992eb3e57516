import type { InputStream } from '../core/stream.ts';

/** An ffmpeg that encodes, as it is watched from outside. */
export interface EncoderRun {
  readonly input: InputStream;
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  /** Seconds of media that it has put out. */
  readonly mediaSeconds: number;
  /** Seconds of its input that wait for it. */
  readonly queuedSeconds: number;
}

/** The encoders of this node, and what became of those before them. */
export class EncoderRuns {
  readonly #running = new Set<EncoderRun>();
  /** Of runs that have ended. */
  readonly #mediaSeconds = new WeakMap<InputStream, number>();
  started = 0;
  /** Those that ended though they were not to. */
  died = 0;

  get running(): ReadonlySet<EncoderRun> {
    return this.#running;
  }

  /** Seconds of media that the encoders of a stream have put out. */
  mediaSeconds(input: InputStream): number {
    let seconds = this.#mediaSeconds.get(input) ?? 0;
    for (const run of this.#running) if (run.input === input) seconds += run.mediaSeconds;
    return seconds;
  }

  /** One has started; call the answer, once, when it has ended. */
  begin(run: EncoderRun): () => void {
    this.#running.add(run);
    this.started++;
    return () => {
      this.#running.delete(run);
      this.#mediaSeconds.set(run.input, (this.#mediaSeconds.get(run.input) ?? 0) + run.mediaSeconds);
    };
  }
}
