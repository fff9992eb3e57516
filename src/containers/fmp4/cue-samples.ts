import { CueStore, type PlacedCue } from '../../core/cue-store.ts';
import type { Packet } from '../../core/packet.ts';
import type { Sample } from './fragment.ts';
import { webVttSample } from './web-vtt.ts';

/** A sample is no shorter, so that many cues which begin and end one after the other make no large file. */
const MIN_SAMPLE_MS = 20;

/**
 * Makes samples of the cues of one track: one after the other without a gap, each with all cues that are shown in its time (ISO/IEC
 * 14496-30, 7.4).
 */
export class CueSamples {
  readonly #cues = new CueStore();
  readonly #sources = new WeakMap<PlacedCue, number>();
  #nextSource = 1;
  #done = -Infinity;

  /** Adds the cue of a packet. What of it is before the samples that were taken is left out. */
  add(packet: Packet): void {
    this.#cues.add(packet);
  }

  /**
   * Takes the samples up to a time that is later each time, in milliseconds.
   * @param from begin of the first sample of all
   * @returns none for a time that is not later
   */
  take(from: number, until: number): { readonly start: number; readonly samples: readonly Sample[] } {
    const start = Math.max(this.#done, from);
    if (until <= start) return { start, samples: [] };
    const cues = this.#cues.between(start, until);
    const edges = [...new Set([until, ...cues.flatMap((cue) => [Math.round(cue.start), Math.round(cue.end)])])];
    let begin = start;
    const samples: Sample[] = [];
    for (const edge of edges.sort((one, other) => one - other)) {
      if (edge > until || (edge < begin + MIN_SAMPLE_MS && edge !== until)) continue;
      const shown = cues.filter((cue) => Math.round(cue.start) < edge && Math.round(cue.end) > begin);
      const data = webVttSample(shown.map((cue) => ({ ...cue, source: this.#sourceOf(cue) })));
      samples.push({ duration: edge - begin, compositionOffset: 0, key: true, data });
      begin = edge;
    }
    this.#done = until;
    this.#cues.over(until);
    return { start, samples };
  }

  #sourceOf(cue: PlacedCue): number {
    const known = this.#sources.get(cue) ?? this.#nextSource++;
    this.#sources.set(cue, known);
    return known;
  }
}
