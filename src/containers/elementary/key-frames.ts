import type { StartKind } from '../../codecs/recovery-point.ts';
import type { Packet } from '../../core/packet.ts';

/**
 * Number of pictures without a better key frame after which a worse one counts: some players start at IDR pictures only,
 * others sooner at these. A stream of open GOPs has one IDR picture, at its beginning; gradual refresh (x264's
 * intra-refresh) has no other key frame; and a stream that is joined midway may have none.
 */
const MAX_WITHOUT = 125;
/** Limit as a multiple of the distance of IDR pictures, unless they are very far apart. */
const DISTANCES = 2;
const MAX_DISTANCE = 1500;

/** Decides which pictures of a stream are its key frames: IDR pictures if it has any, else recovery points. */
export class KeyFrames {
  /** Pictures since the last IDR picture, and since the last key frame without gradual refresh. */
  #sinceIdr = Infinity;
  #sinceWhole = Infinity;
  #maxWithout = MAX_WITHOUT;

  /** @param start how decoding can start at the next picture */
  next(start: StartKind | undefined): Packet['key'] {
    this.#sinceIdr++;
    this.#sinceWhole++;
    const key = this.#isKey(start);
    if (!key) return false;
    if (start !== 'gradual') this.#sinceWhole = 0;
    if (start !== 'idr') return 'open';
    if (this.#sinceIdr < MAX_DISTANCE) this.#maxWithout = Math.max(MAX_WITHOUT, this.#sinceIdr * DISTANCES);
    this.#sinceIdr = 0;
    return true;
  }

  #isKey(start: StartKind | undefined): boolean {
    if (start === 'open') return this.#sinceIdr > this.#maxWithout;
    if (start === 'gradual') return this.#sinceWhole > this.#maxWithout;
    return start === 'idr';
  }
}
