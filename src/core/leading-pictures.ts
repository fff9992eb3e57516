import type { Packet } from './packet.ts';

/**
 * Finds the leading pictures of one video track: frames that follow the first key frame of a reader and are shown before it. After
 * an open key frame they refer to frames before it, so a reader that begins there cannot decode them (RASL pictures of H.265,
 * ITU-T H.265 clause 3; in H.264 those that precede a recovery point in output order).
 */
export class LeadingPictures {
  /** Presentation time of the key frame, until a frame comes that is shown after it. */
  #from: number | undefined;

  /** Whether frames may have to be dropped; `drops` need not be called otherwise. */
  get waits(): boolean {
    return this.#from !== undefined;
  }

  /** Starts with a key frame. */
  begin({ key, pts }: Pick<Packet, 'key' | 'pts'>): void {
    this.#from = key === 'open' ? pts : undefined;
  }

  /** Whether a frame cannot be decoded. Call it for each frame after the key frame, in decoding order. */
  drops({ key, pts }: Pick<Packet, 'key' | 'pts'>): boolean {
    if (this.#from === undefined) return false;
    if (key === false && pts < this.#from) return true;
    this.#from = undefined;
    return false;
  }
}
