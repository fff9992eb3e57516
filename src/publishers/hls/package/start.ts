import { HOLD_MS } from '../../../access/starting.ts';
import type { Playlist } from '../../../core/playlist.ts';
import { HeldMasters } from './held-masters.ts';

/** A rendition that players may have to wait for. */
export interface Startable {
  /** Players can start with it. */
  readonly started: boolean;
  /** It has only just begun. */
  readonly fresh: boolean;
  /** When the newest of it came, in milliseconds since the epoch. */
  readonly newestAt: number;
}

/**
 * Which renditions of a stream are there to be played, and which are waited for: players load master playlists but once. A
 * rendition that has just been told of is waited for as long as a request is held.
 */
export class Start {
  /** Who is held until there is something of every rendition of a playlist. */
  readonly waiters = new HeldMasters<Playlist>();
  readonly #renditionsOf: (playlist: Playlist) => readonly Startable[];
  readonly #onStarted: () => void;
  /** Milliseconds since the epoch until which playlists wait for renditions that have brought nothing. */
  #patientUntil = 0;
  /** When encoders that had rested were last asked to go on. */
  #wokenAt = 0;

  /**
   * @param renditionsOf what a playlist names
   * @param onStarted hears that there is something of all renditions, each time when that was waited for
   */
  constructor(renditionsOf: (playlist: Playlist) => readonly Startable[], onStarted: () => void) {
    this.#renditionsOf = renditionsOf;
    this.#onStarted = onStarted;
  }

  /** Renditions have just been told of. */
  expect(): void {
    this.#patientUntil = Date.now() + HOLD_MS;
  }

  /** Encoders are asked to go on: what they put out before they rested is old. */
  wake(): void {
    this.#wokenAt = Date.now();
    this.expect();
  }

  /** A segment has begun in one of all renditions. */
  note(all: readonly Startable[]): void {
    if (this.#patientUntil === 0) return;
    const started = all.filter((rendition) => this.#isStarted(rendition));
    if (started.length === all.length) {
      this.#patientUntil = 0;
      this.#onStarted();
    } else if (started.length === 1 && started[0]?.fresh === true) this.expect();
    this.check();
  }

  /** Ends the holds that have nothing to wait for any more. */
  check(): void {
    this.waiters.check((playlist) => this.stateOf(playlist) !== 'starting');
  }

  /** What somebody would play of a playlist: nothing, not yet, or all that come. */
  stateOf(playlist: Playlist): 'empty' | 'starting' | 'started' {
    const renditions = this.#renditionsOf(playlist);
    if (renditions.length === 0) return 'empty';
    const started = renditions.filter((rendition) => this.#isStarted(rendition)).length;
    if (started === renditions.length) return 'started';
    return started > 0 && Date.now() >= this.#patientUntil ? 'started' : 'starting';
  }

  #isStarted({ started, newestAt }: Startable): boolean {
    return started && newestAt >= this.#wokenAt;
  }
}
