import { OPUS_SILENCE_SECONDS, silentPacket } from '../codecs/silence.ts';
import type { Packet } from '../core/packet.ts';
import type { MediaTrack } from '../core/track.ts';
import { MAX_LAG_SECONDS } from './lag.ts';

/**
 * Audio of the source that is so much later than it usually is has stopped: players near the live edge have no more. Audio
 * that is encoded here may be held up together with its encoder.
 */
const PAUSE_SECONDS = 0.8;
/** How far audio may usually be behind, for this to be waited for as well. */
const MAX_USUAL_SECONDS = MAX_LAG_SECONDS - PAUSE_SECONDS;
/** How much of its lateness a packet leaves to the next one. */
const DECAY = 0.999;
/** Video frames that are further apart have a pause between them. */
const MAX_APART_SECONDS = 5;

/**
 * What takes the place of media of one track that does not come, so that players go on with the media that does: silence
 * for audio, and for video its newest IDR picture, again and again. Times are media times in seconds.
 */
export class StandIn {
  readonly #wait: number;
  #newest: Packet | undefined;
  #silence: { readonly track: MediaTrack; readonly data: Buffer | undefined } | undefined;
  #isActive = false;
  /** By how much it is usually later than what comes first. */
  #usual = 0;
  /** How far apart video frames have been that went on as if nothing had been missing. */
  #apart = 0;

  constructor({ type, bypass }: MediaTrack) {
    this.#wait = type === 'audio' && bypass ? PAUSE_SECONDS : MAX_LAG_SECONDS;
  }

  /** Its packets take the place of others. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /**
   * Takes note of a packet that came.
   * @param behind seconds from its time to that of the newest packet of any track
   */
  note(packet: Packet, behind: number): void {
    if (packet.track.type === 'audio') {
      this.#usual = Math.min(MAX_USUAL_SECONDS, Math.max(behind, this.#usual * DECAY));
      this.#newest = packet;
    } else if (packet.key) {
      this.#newest = packet;
    }
    this.#isActive = false;
  }

  /** A video frame came that cannot follow what took its place. @param apart seconds since the one before */
  noteLost(apart: number): void {
    if (apart <= MAX_APART_SECONDS) this.#apart = Math.max(this.#apart, apart);
  }

  /** It is known that nothing comes. */
  begin(): void {
    this.#isActive = true;
  }

  /** What comes next has nothing to do with what was there. */
  stop(): void {
    this.#isActive = false;
  }

  /**
   * Whether something has to take the place of what does not come.
   * @param missing seconds that have come of other tracks since this one ended
   * @param lasts seconds that one packet of it takes
   */
  isDue(missing: number, lasts: number): boolean {
    return missing > (this.#isActive ? lasts + this.#usual : Math.max(this.#wait + this.#usual, 2 * this.#apart));
  }

  /**
   * The packet that comes next in the place of others.
   * @param dts in ticks of the track
   * @param duration ticks; of audio, those of a frame
   * @returns undefined where the track has none
   */
  packet(track: MediaTrack, dts: number, duration: number): Packet | undefined {
    const packet = track.type === 'audio' ? this.#silent(track, dts, duration) : this.#still(track, dts, duration);
    if (packet !== undefined) this.#isActive = true;
    return packet;
  }

  #silent(track: MediaTrack, dts: number, duration: number): Packet | undefined {
    if (this.#silence?.track !== track)
      this.#silence = {
        track,
        data: silentPacket(track, this.#newest?.track === track ? this.#newest.data : undefined),
      };
    const { data } = this.#silence;
    const lasts = track.codec === 'OPUS' ? Math.round(OPUS_SILENCE_SECONDS * track.timebase.den) : duration;
    return data && { track, dts, pts: dts, duration: lasts, key: true, data };
  }

  #still(track: MediaTrack, dts: number, duration: number): Packet | undefined {
    const still = this.#newest;
    // behind another key frame something may need what was decoded before, so that it cannot come twice
    if (still?.track !== track || still.key !== true) return undefined;
    return { ...still, dts, pts: dts + still.pts - still.dts, duration };
  }
}
