import type { Rendition } from './rendition.ts';

/** Playlists wait so long for renditions that have just been told of: players load them but once. */
const ALL_STARTED_MS = 5000;

/** Which renditions of a stream are there to be played, and which are waited for. */
export class Start {
  /** Milliseconds since the epoch until which playlists wait for renditions that have brought nothing. */
  #patientUntil = 0;
  /** When encoders that had rested were last asked to go on. */
  #wokenAt = 0;

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
  note(all: readonly Rendition[]): void {
    if (this.#patientUntil === 0) return;
    const started = all.filter((rendition) => this.#isStarted(rendition));
    if (started.length === all.length) this.#patientUntil = 0;
    else if (started.length === 1 && started[0]?.packager.window.kept.length === 0) this.expect();
  }

  /** What somebody would play of some renditions: nothing, not yet, or all that come. */
  stateOf(renditions: readonly Rendition[]): 'empty' | 'starting' | 'started' {
    if (renditions.length === 0) return 'empty';
    const started = renditions.filter((rendition) => this.#isStarted(rendition)).length;
    if (started === renditions.length) return 'started';
    return started > 0 && Date.now() >= this.#patientUntil ? 'started' : 'starting';
  }

  #isStarted({ started, newestAt }: Rendition): boolean {
    return started && newestAt >= this.#wokenAt;
  }
}
