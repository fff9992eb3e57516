/**
 * Decode times, of which NUT carries none: by its specification each is the smallest of the last presentation times,
 * of which one more counts than frames are reordered. The first frames are kept back until there are as many.
 */
export class DecodeOrder<F extends { readonly pts: number; dts: number }> {
  #delay: number;
  /** The last decode time. */
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

  /** Takes a frame, in decode order, and sets its `dts`. */
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

  /** What follows is of another stream, which reorders other frames. */
  restart(delay: number): void {
    this.end();
    this.#delay = delay;
    this.#times.length = 0;
    this.#first = [];
  }

  /** Hands over what is kept back. */
  end(): void {
    const frames = this.#first;
    const [first, second] = this.#times;
    if (frames === undefined || first === undefined) return;
    this.#first = undefined;
    const steps = this.#delay + 1;
    const usual = second === undefined ? 0 : second - first;
    // after another stream there is only so much room in front of the first picture
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
