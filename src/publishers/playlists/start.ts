/** A rendition that players may have to wait for. */
export interface Startable {
  /** Players can start with it. */
  readonly started: boolean;
  /** It has only just begun. */
  readonly fresh: boolean;
  /** When the newest of it came, in milliseconds since the epoch. */
  readonly newestAt: number;
}

/** Playlists wait so long for renditions that have just been told of: players load them but once. */
const ALL_STARTED_MS = 5000;

/** Which renditions of a stream are there to be played, and which are waited for. */
export class Start {
  readonly #onStarted: () => void;
  /** Milliseconds since the epoch until which playlists wait for renditions that have brought nothing. */
  #patientUntil = 0;
  /** When encoders that had rested were last asked to go on. */
  #wokenAt = 0;

  /** @param onStarted hears that there is something of all renditions, each time when that was waited for */
  constructor(onStarted: () => void) {
    this.#onStarted = onStarted;
  }

  /** Renditions have just been told of. */
  expect(): void {
    this.#patientUntil = Date.now() + ALL_STARTED_MS;
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
  }

  /** What somebody would play of some renditions: nothing, not yet, or all that come. */
  stateOf(renditions: readonly Startable[]): 'empty' | 'starting' | 'started' {
    if (renditions.length === 0) return 'empty';
    const started = renditions.filter((rendition) => this.#isStarted(rendition)).length;
    if (started === renditions.length) return 'started';
    return started > 0 && Date.now() >= this.#patientUntil ? 'started' : 'starting';
  }

  #isStarted({ started, newestAt }: Startable): boolean {
    return started && newestAt >= this.#wokenAt;
  }
}
