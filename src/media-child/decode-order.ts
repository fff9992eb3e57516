/**
 * Computes decode times, which NUT does not carry. By its specification, each is the smallest of the last `delay + 1`
 * presentation times. The first frames are held until there are as many.
 */
export class DecodeOrder<F extends { readonly pts: number; dts: number }> {
  #delay: number;
  #last = -Infinity;
  readonly #output: (frame: F) => void;
  /** Ascending. */
  readonly #times: number[] = [];
  #first: F[] | undefined = [];

  /** @param delay frames that can precede another in decoding and follow it in output */
  constructor(delay: number, output: (frame: F) => void) {
    this.#delay = delay;
    this.#output = output;
  }

  /** Sets the `dts` of a frame. Frames come in decode order. */
  push(frame: F): void {
    if (this.#delay === 0) return this.#give(frame, frame.pts);
    const times = this.#times;
    let at = times.length;
    while (at > 0 && (times[at - 1] as number) > frame.pts) at--;
    times.splice(at, 0, frame.pts);
    if (this.#first !== undefined) {
      this.#first.push(frame);
      if (this.#first.length > this.#delay) this.end();
      return;
    }
    this.#give(frame, times.shift() as number);
  }

  /** Begins another stream, with another number of reordered frames. */
  restart(delay: number): void {
    this.end();
    this.#delay = delay;
    this.#times.length = 0;
    this.#first = [];
  }

  /** Hands over the held frames. */
  end(): void {
    const frames = this.#first;
    const [first, second] = this.#times;
    if (frames === undefined || first === undefined) return;
    this.#first = undefined;
    const steps = this.#delay + 1;
    const usual = second === undefined ? 0 : second - first;
    // after another stream, the times must fit between its last frame and the first one
    const step = first > this.#last ? Math.min(usual, Math.floor((first - this.#last) / steps)) : usual;
    frames.forEach((frame, index) => this.#give(frame, first - (this.#delay - index) * step));
    this.#times.shift();
  }

  #give(frame: F, dts: number): void {
    frame.dts = dts;
    this.#last = dts;
    this.#output(frame);
  }
}
