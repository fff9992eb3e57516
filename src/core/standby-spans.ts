import type { Packet } from './packet.ts';
import { toSeconds } from './timebase.ts';

/** Spans that are remembered: packets that encoders delay are of the last one or two. */
const MAX_SPANS = 8;
/** Times are rounded to ticks of the tracks. */
const ROUNDING_SECONDS = 0.002;

/** Spans of a stream's media time, in seconds, in which something else than its publisher is shown; the latest ones. */
export class StandbySpans {
  #spans: { readonly from: number; to: number }[] = [];

  /** @param from where the publisher was shown last */
  begin(from: number): void {
    this.#spans = [...this.#spans.slice(1 - MAX_SPANS), { from, to: Infinity }];
  }

  /** @param to where a publisher is shown again */
  end(to: number): void {
    const last = this.#spans.at(-1);
    if (last?.to === Infinity) last.to = to;
  }

  /** Whether a packet, of the input or an output stream, is not the publisher's. */
  has({ pts, track: { timebase } }: Packet): boolean {
    if (this.#spans.length === 0) return false;
    const at = toSeconds(pts, timebase) + ROUNDING_SECONDS;
    return this.#spans.some(({ from, to }) => at >= from && at < to);
  }
}
