import { tolerant } from '../../codecs/bits.ts';
import type { Packet } from '../../core/packet.ts';
import { reorderedFrames } from '../../core/reordering.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { Track, VideoTrack } from '../../core/track.ts';

/** More than any reordering takes: of a picture that is shown longer before it is decoded, one of the times is wrong. */
const MAX_SECONDS = 3;
/** Taken for the distance of two pictures where nothing tells it. */
const USUAL_RATE = 25;

/**
 * Has pictures decoded before they are shown. Some sources tell that they are shown before: FLV's composition times have a
 * sign (annex E.4.3.1), and encoders of MPEG-TS mix up both times, which ISO/IEC 13818-1 does not allow. Their decoding times
 * are moved back, by one constant for the whole track, which is found by its first key frame and only grows; presentation
 * stays as it is told, so audio stays beside it.
 */
export class DecodeLead {
  /** Ticks of the track that decoding times are moved back. */
  ticks = 0;
  #last = -1;
  #track: Track | undefined;
  /** Ticks from one picture to the next, and of all by which one is shown later where none is shown before it is decoded. */
  #step = 0;
  #reordered = 0;
  /** Offset of the last key frame. */
  #atKey = 0;

  /**
   * Takes note of a picture before its times are asked for.
   * @param offset from the source's decoding time to presentation, in ticks of the track
   */
  note(track: Track, key: Packet['key'], offset: number): void {
    if (track.type !== 'video') return;
    if (key) {
      this.#follow(track);
      this.#atKey = offset;
    }
    let wanted = -offset;
    // A key frame is shown later by all that pictures are reordered: what it lacks, those behind it lack too. One that is
    // shown when it is decoded tells that only beside a picture that is shown later: some encoders reorder none.
    const lacking = this.#reordered - this.#atKey;
    if (key ? offset < 0 : offset > this.#atKey && lacking > this.#step) wanted = lacking;
    if (wanted > this.ticks && toSeconds(wanted, track.timebase) <= MAX_SECONDS) this.ticks = wanted;
  }

  /** The decoding time of a picture, later than the one before. @param told by the source, later than the one before */
  next(told: number): number {
    this.#last = this.ticks === 0 ? told : Math.max(this.#last + 1, told - this.ticks);
    return this.#last;
  }

  #follow(track: VideoTrack): void {
    if (track === this.#track) return;
    this.#track = track;
    const { codec, config, framerate, timebase } = track;
    this.#step = Math.round(timebase.den / (timebase.num * (framerate || USUAL_RATE)));
    this.#reordered = (tolerant(() => reorderedFrames(codec, config)) ?? 0) * this.#step;
  }
}
