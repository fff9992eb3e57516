import { BitstreamError } from '../codecs/bits.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import type { Logger } from '../log/log.ts';

/** Whether an error means that a track or frame cannot be packaged. */
export function isRefusal(error: unknown): error is BitstreamError | UnsupportedTrackError {
  return error instanceof BitstreamError || error instanceof UnsupportedTrackError;
}

/** Remembers the tracks that a package cannot carry. Each is tried once, and logged once. */
export class Refusals {
  readonly #log: Logger;
  readonly #refused = new WeakSet<Track>();
  readonly #logged = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Returns the result of `make`; undefined for a track that the package cannot carry. */
  tried<T>(track: MediaTrack, make: () => T): T | undefined {
    if (this.#refused.has(track)) return undefined;
    try {
      return make();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#refused.add(track);
      this.#warnOnce(track, error.message);
      return undefined;
    }
  }

  #warnOnce({ id, codec }: MediaTrack, reason: string): void {
    const key = `${id} ${codec}`;
    if (this.#logged.has(key)) return;
    this.#logged.add(key);
    this.#log.warn({ track: id, codec, reason }, 'the track is not included in HLS');
  }
}
