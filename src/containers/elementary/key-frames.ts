import type { StartKind } from '../../codecs/recovery-point.ts';
import type { Packet } from '../../core/packet.ts';

/**
 * Pictures without a start that is better, after which a worse one is taken: players begin at IDR pictures alone, or sooner. A
 * stream of open GOPs has one IDR picture at its beginning, one that refreshes bit by bit (x264's intra-refresh) no other key
 * frame, and none where it is joined.
 */
const PATIENCE = 125;
/** Where IDR pictures come, the next is waited for this many times as long as they are apart, up to some pictures. */
const APART = 2;
const MAX_PATIENCE = 1500;

/** Which pictures of a stream are its key frames: IDR pictures where it has any, else recovery points. */
export class KeyFrames {
  /** Pictures since the last IDR picture, and since the last key frame that is whole at once. */
  #sinceIdr = Infinity;
  #sinceWhole = Infinity;
  #patience = PATIENCE;

  /** Takes the next picture. @param start how decoding can start at it */
  next(start: StartKind | undefined): Packet['key'] {
    this.#sinceIdr++;
    this.#sinceWhole++;
    const key = this.#isKey(start);
    if (!key) return false;
    if (start !== 'gradual') this.#sinceWhole = 0;
    if (start !== 'idr') return 'open';
    if (this.#sinceIdr < MAX_PATIENCE) this.#patience = Math.max(PATIENCE, this.#sinceIdr * APART);
    this.#sinceIdr = 0;
    return true;
  }

  #isKey(start: StartKind | undefined): boolean {
    if (start === 'open') return this.#sinceIdr > this.#patience;
    if (start === 'gradual') return this.#sinceWhole > this.#patience;
    return start === 'idr';
  }
}
