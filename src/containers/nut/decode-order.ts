/**
 * Decode times, of which NUT carries none: the spec has them be the smallest of the last presentation times, one more
 * than the stream's decode delay. Frames before there are as many are kept back until their times can be told.
 */
export class DecodeOrder<F extends { readonly pts: number; dts: number }> {
  readonly #delay: number;
  readonly #output: (frame: F) => void;
  /** Ascending. */
  readonly #times: number[] = [];
  #first: F[] | undefined = [];

  constructor(delay: number, output: (frame: F) => void) {
    this.#delay = delay;
    this.#output = output;
  }

  /** Takes frames in decode order, `dts` as yet unset. */
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
