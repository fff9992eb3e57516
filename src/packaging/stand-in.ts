import { OPUS_SILENCE_SECONDS, silentPacket } from '../codecs/silence.ts';
import type { Packet } from '../core/packet.ts';
import type { MediaTrack } from '../core/track.ts';
import { MAX_LAG_SECONDS } from './lag.ts';

/**
 * Seconds after which bypassed audio, later than usual, has stopped: players near the live edge run out of it. Audio
 * encoded here gets longer, because its encoder may be delayed.
 */
const PAUSE_SECONDS = 0.8;
/** Limit of the usual lateness that is added to the wait. */
const MAX_USUAL_SECONDS = MAX_LAG_SECONDS - PAUSE_SECONDS;
/** Factor by which the usual lateness falls with each packet. */
const DECAY = 0.999;
/** Video frames further apart than this have a pause between them. */
const MAX_APART_SECONDS = 5;

/**
 * Replaces missing media of one track, so that players continue with the other tracks: silence for audio, and for video
 * the newest IDR frame, repeated. Times are media times in seconds.
 */
export class StandIn {
  readonly #wait: number;
  #newest: Packet | undefined;
  #silence: { readonly track: MediaTrack; readonly data: Buffer | undefined } | undefined;
  #isActive = false;
  /** Usual seconds behind the newest packet of any track. */
  #usual = 0;
  /** Longest seconds between video frames that could not follow the replacement. */
  #apart = 0;

  constructor({ type, bypass }: MediaTrack) {
    this.#wait = type === 'audio' && bypass ? PAUSE_SECONDS : MAX_LAG_SECONDS;
  }

  get isActive(): boolean {
    return this.#isActive;
  }

  /**
   * Records a packet that arrived.
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

  /** Records a video frame that cannot follow its replacement. @param apart seconds since the frame before */
  noteLost(apart: number): void {
    if (apart <= MAX_APART_SECONDS) this.#apart = Math.max(this.#apart, apart);
  }

  /** Starts at once: the track has left. */
  begin(): void {
    this.#isActive = true;
  }

  /** Stops: the next packet begins anew. */
  stop(): void {
    this.#isActive = false;
  }

  /**
   * Whether a replacement packet is due.
   * @param missing seconds of other tracks since this one ended
   * @param lasts seconds of one replacement packet
   */
  isDue(missing: number, lasts: number): boolean {
    return missing > (this.#isActive ? lasts + this.#usual : Math.max(this.#wait + this.#usual, 2 * this.#apart));
  }

  /**
   * Makes the next replacement packet.
   * @param dts in ticks of the track
   * @param duration ticks; of audio, those of a frame
   * @returns undefined where the track cannot be replaced
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
    // frames after an open key frame may refer to earlier ones, so it cannot be repeated
    if (still?.track !== track || still.key !== true) return undefined;
    return { ...still, dts, pts: dts + still.pts - still.dts, duration };
  }
}
