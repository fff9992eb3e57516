import type { Track } from '../../core/track.ts';
import { PROGRAM } from './section-writer.ts';

const FIRST = 0x100;

/** Whether all event tracks of the codec share one PID: readers take no more. Tracks of KLV are of different sensors. */
export function sharesPid({ type, codec }: Track): boolean {
  return type === 'data' && codec !== 'KLV';
}

/**
 * PIDs of one program's tracks. A track keeps its PID for the life of the program, even if it leaves and returns; event tracks
 * of a codec may share one.
 */
export class Pids {
  readonly #byTrack = new Map<number | string, number>();
  #last = FIRST - 1;

  /** @param used PIDs of other tracks now */
  of(track: Track, used: ReadonlySet<number>): number {
    const key = sharesPid(track) ? track.codec : track.id;
    const known = this.#byTrack.get(key);
    if (known !== undefined && !used.has(known)) return known;
    const pid = this.#free(used);
    this.#byTrack.set(key, pid);
    return pid;
  }

  /** @returns a PID that was never used; when there is none left, one that is not used now */
  #free(used: ReadonlySet<number>): number {
    do this.#last = this.#last + 1 < PROGRAM.pid ? this.#last + 1 : FIRST;
    while (used.has(this.#last));
    for (const [key, pid] of this.#byTrack) if (pid === this.#last) this.#byTrack.delete(key);
    return this.#last;
  }
}
