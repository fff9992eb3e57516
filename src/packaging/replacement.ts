import { OPUS_SILENCE_SECONDS, silentPacket } from '../codecs/silence.ts';
import type { Packet } from '../core/packet.ts';
import type { MediaTrack } from '../core/track.ts';

/** Makes packets that replace missing ones of one track: silence for audio, the newest IDR frame again for video. */
export class Replacement {
  #newest: Packet | undefined;
  #silence: { readonly track: MediaTrack; readonly data: Buffer | undefined } | undefined;

  /** Records a packet that arrived. */
  note(packet: Packet): void {
    if (packet.track.type === 'audio' || packet.key) this.#newest = packet;
  }

  /**
   * @param dts in ticks of the track
   * @param duration ticks; of audio, those of a frame
   * @returns undefined where the track cannot be replaced
   */
  packet(track: MediaTrack, dts: number, duration: number): Packet | undefined {
    return track.type === 'audio' ? this.#silent(track, dts, duration) : this.#still(track, dts, duration);
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
