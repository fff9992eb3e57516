import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { Viewer } from '../answer/answer.ts';

/** Of the target duration, between two answers that tell a player the same (RFC 8216 section 6.3.4). */
const PAUSE_TARGETS = 0.5;

/** Players that were given one state of a playlist, and when, in milliseconds since the epoch. */
interface Given {
  readonly mark: string;
  readonly at: WeakMap<Viewer, number>;
}

/** Which players have been given a media playlist as it is now, without having named what comes next. */
export class Repeats {
  readonly #given: Partial<Record<ChunklistForm, Given>> = {};

  /**
   * Milliseconds until a player that has the playlist may be told the same again; 0 when it may be now.
   * @param mark of what it is to be told: differs between states that differ
   * @param targetDuration seconds
   */
  pauseOf(viewer: Viewer, form: ChunklistForm, mark: string, targetDuration: number, now = Date.now()): number {
    const given = this.#given[form];
    const at = given?.mark === mark ? given.at.get(viewer) : undefined;
    return at === undefined ? 0 : Math.max(0, at + PAUSE_TARGETS * targetDuration * 1000 - now);
  }

  /** A player is given the playlist. Who had an older one is forgotten. */
  note(viewer: Viewer, form: ChunklistForm, mark: string, now = Date.now()): void {
    const given = this.#given[form];
    if (given?.mark === mark) given.at.set(viewer, now);
    else this.#given[form] = { mark, at: new WeakMap([[viewer, now]]) };
  }
}
