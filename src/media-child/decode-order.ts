/**
 * Decode times, of which NUT carries none: by its specification each is the smallest of the last presentation times,
 * of which one more counts than frames are reordered. The first frames are kept back until there are as many.
 */
export class DecodeOrder<F extends { readonly pts: number; dts: number }> {
  readonly #delay: number;
  readonly #output: (frame: F) => void;
  /** Ascending. */
  readonly #times: number[] = [];
  #first: F[] | undefined = [];

  /** @param delay frames that can precede another in decoding and follow it in output */
  constructor(delay: number, output: (frame: F) => void) {
    this.#delay = delay;
    this.#output = output;
  }

  /** Takes a frame, in decode order, and sets its `dts`. */
  push(frame: F): void {
    if (this.#delay === 0) {
      frame.dts = frame.pts;
      this.#output(frame);
      return;
    }
    const times = this.#times;
    let at = times.length;
    while (at > 0 && (times[at - 1] as number) > frame.pts) at--;
    times.splice(at, 0, frame.pts);
    if (this.#first !== undefined) {
      this.#first.push(frame);
      if (this.#first.length > this.#delay) this.end();
      return;
    }
    frame.dts = times.shift() as number;
    this.#output(frame);
  }

  /** Hands over what is kept back. */
  end(): void {
    const frames = this.#first;
    const [first, second] = this.#times;
    if (frames === undefined || first === undefined) return;
    this.#first = undefined;
    const step = second === undefined ? 0 : second - first;
    frames.forEach((frame, index) => {
      frame.dts = first - (this.#delay - index) * step;
      this.#output(frame);
    });
    this.#times.shift();
  }
}
