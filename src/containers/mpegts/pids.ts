import type { Track } from '../../core/track.ts';
import { PROGRAM } from './section-writer.ts';

const FIRST = 0x100;

/**
 * The PIDs of one program's tracks. A track has its own as long as the program lives, also when it leaves and returns; all
 * tracks of events of a codec have one.
 */
export class Pids {
  readonly #byTrack = new Map<number | string, number>();
  #last = FIRST - 1;

  /** @param used those that others have now */
  of({ id, type, codec }: Track, used: ReadonlySet<number>): number {
    const key = type === 'data' ? codec : id;
    const known = this.#byTrack.get(key);
    if (known !== undefined && !used.has(known)) return known;
    const pid = this.#free(used);
    this.#byTrack.set(key, pid);
    return pid;
  }

  /** One that nothing has or has had; when there is none left, one that nothing has. */
  #free(used: ReadonlySet<number>): number {
    do this.#last = this.#last + 1 < PROGRAM.pid ? this.#last + 1 : FIRST;
    while (used.has(this.#last));
    for (const [key, pid] of this.#byTrack) if (pid === this.#last) this.#byTrack.delete(key);
    return this.#last;
  }
}
