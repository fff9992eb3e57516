import type { Packet } from './packet.ts';

/**
 * Pictures of one video track that follow the key frame that somebody begins with and are shown before it. Behind an open key
 * frame they need pictures from before it, so who begins there cannot decode them (RASL pictures of H.265; in H.264 those that
 * precede a recovery point in output order).
 */
export class LeadingPictures {
  /** Presentation of that key frame, until a picture comes that is shown after it. */
  #from: number | undefined;

  /** False as long as none is dropped: nothing need be asked then. */
  get waits(): boolean {
    return this.#from !== undefined;
  }

  /** Somebody begins with a key frame. */
  begin({ key, pts }: Pick<Packet, 'key' | 'pts'>): void {
    this.#from = key === 'open' ? pts : undefined;
  }

  /** Whether a picture cannot be decoded. To be asked for each behind the beginning, in order. */
  drops({ key, pts }: Pick<Packet, 'key' | 'pts'>): boolean {
    if (this.#from === undefined) return false;
    if (key === false && pts < this.#from) return true;
    this.#from = undefined;
    return false;
  }
}
