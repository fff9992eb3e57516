import { HOLD_MS } from '../../../access/starting.ts';
import type { Playlist } from '../../../core/playlist.ts';
import { HeldMasters } from '../blocking-reload/held-masters.ts';

/** A rendition that players may have to wait for. */
export interface Startable {
  readonly started: boolean;
  readonly fresh: boolean;
  /** Arrival of its newest media, in milliseconds since the epoch. */
  readonly newestAt: number;
}

/**
 * Tracks which renditions of a stream can be played, and which requests should wait for: players load master playlists only once.
 * A new rendition is waited for as long as a request is held.
 */
export class Readiness {
  /** Requests held until every rendition of a playlist has media. */
  readonly waiters = new HeldMasters<Playlist>();
  readonly #renditionsOf: (playlist: Playlist) => readonly Startable[];
  readonly #onStarted: () => void;
  /** Milliseconds since the epoch until which playlists wait for renditions without media. */
  #waitUntil = 0;
  /** Last time that resting encoders were resumed, in milliseconds since the epoch. */
  #wokenAt = 0;

  /**
   * @param renditionsOf renditions that a playlist names
   * @param onStarted called when all renditions have media, each time after a wait
   */
  constructor(renditionsOf: (playlist: Playlist) => readonly Startable[], onStarted: () => void) {
    this.#renditionsOf = renditionsOf;
    this.#onStarted = onStarted;
  }

  expect(): void {
    this.#waitUntil = Date.now() + HOLD_MS;
  }

  /** Waits for resting encoders that were resumed: their earlier output is too old to start with. */
  wake(): void {
    this.#wokenAt = Date.now();
    this.expect();
  }

  /** Checks the waits after a segment began in a rendition. */
  note(all: readonly Startable[]): void {
    if (this.#waitUntil === 0) return;
    const started = all.filter((rendition) => this.#isStarted(rendition));
    if (started.length === all.length) {
      this.#waitUntil = 0;
      this.#onStarted();
    } else if (started.length === 1 && started[0]?.fresh === true) this.expect();
    this.check();
  }

  /** Ends the holds of playlists that need not wait any longer. */
  check(): void {
    this.waiters.check((playlist) => this.stateOf(playlist) !== 'starting');
  }

  /** State of a playlist: without renditions, still waiting for some, or playable. */
  stateOf(playlist: Playlist): 'empty' | 'starting' | 'started' {
    const renditions = this.#renditionsOf(playlist);
    if (renditions.length === 0) return 'empty';
    const started = renditions.filter((rendition) => this.#isStarted(rendition)).length;
    if (started === renditions.length) return 'started';
    return started > 0 && Date.now() >= this.#waitUntil ? 'started' : 'starting';
  }

  #isStarted({ started, newestAt }: Startable): boolean {
    return started && newestAt >= this.#wokenAt;
  }
}
