import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { Viewer } from '../answer/played-stream.ts';

/** Target durations between two equal answers to one player (RFC 8216 section 6.3.4). */
const PAUSE_TARGETS = 0.5;

/** Players that got one state of a playlist, with the times in milliseconds since the epoch. */
interface Given {
  readonly mark: string;
  readonly at: WeakMap<Viewer, number>;
}

/** Players that got the present state of a media playlist by a request that does not name the next one. */
export class Repeats {
  readonly #given: Partial<Record<ChunklistForm, Given>> = {};

  /**
   * Milliseconds until a player may get the same state again; 0: now.
   * @param mark differs between states that differ
   * @param targetDuration seconds
   */
  pauseOf(viewer: Viewer, form: ChunklistForm, mark: string, targetDuration: number, now = Date.now()): number {
    const given = this.#given[form];
    const at = given?.mark === mark ? given.at.get(viewer) : undefined;
    return at === undefined ? 0 : Math.max(0, at + PAUSE_TARGETS * targetDuration * 1000 - now);
  }

  /** Notes that a player gets the playlist. Forgets the players of older states. */
  note(viewer: Viewer, form: ChunklistForm, mark: string, now = Date.now()): void {
    const given = this.#given[form];
    if (given?.mark === mark) given.at.set(viewer, now);
    else this.#given[form] = { mark, at: new WeakMap([[viewer, now]]) };
  }
}
