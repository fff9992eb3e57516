import { tolerant } from '../../codecs/bits.ts';
import type { Packet } from '../../core/packet.ts';
import { reorderedFrames } from '../../core/reordering.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { Track, VideoTrack } from '../../core/track.ts';

/** Longest reordering: a frame that is shown later than this after its decoding time has a wrong time. */
const MAX_SECONDS = 3;
/** Frames per second, assumed where the track has no frame rate. */
const USUAL_RATE = 25;

/**
 * Ensures that frames are decoded before they are shown. Some sources send the opposite: FLV's composition times have a
 * sign (annex E.4.3.1), and encoders of MPEG-TS mix up both times, which ISO/IEC 13818-1 does not allow. Their decoding times
 * are moved back by one constant for the whole track, which is found by its first key frame and only grows. Presentation times
 * stay as sent, so that audio stays in sync.
 */
export class DecodeLead {
  /** Ticks of the track that decoding times are moved back. */
  ticks = 0;
  #last = -1;
  #track: Track | undefined;
  #step = 0;
  /** Ticks by which a key frame is shown after its decoding time when no frame is shown before its own. */
  #reordered = 0;
  #atKey = 0;

  /**
   * Notes the offset of a frame; called before `next`.
   * @param offset from the source's decoding time to presentation, in ticks of the track
   */
  note(track: Track, key: Packet['key'], offset: number): void {
    if (track.type !== 'video') return;
    if (key) {
      this.#follow(track);
      this.#atKey = offset;
    }
    let wanted = -offset;
    // A key frame is shown later by the whole reordering: what it lacks, the frames after it lack too. One that is shown
    // when it is decoded lacks something only if another frame is shown later: some encoders reorder none.
    const lacking = this.#reordered - this.#atKey;
    if (key ? offset < 0 : offset > this.#atKey && lacking > this.#step) wanted = lacking;
    if (wanted > this.ticks && toSeconds(wanted, track.timebase) <= MAX_SECONDS) this.ticks = wanted;
  }

  /** Decoding time of a frame, later than the previous one. @param sent by the source, later than the previous one */
  next(sent: number): number {
    this.#last = this.ticks === 0 ? sent : Math.max(this.#last + 1, sent - this.ticks);
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
