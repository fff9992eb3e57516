import { BitstreamError } from '../codecs/bits.ts';
import { UnsupportedTrackError } from '../containers/fmp4/sample-entry.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import type { Logger } from '../log/log.ts';

/** Whether an error says that something of a source cannot be packaged. */
export function isRefusal(error: unknown): error is BitstreamError | UnsupportedTrackError {
  return error instanceof BitstreamError || error instanceof UnsupportedTrackError;
}

/** Tracks that have no place in a package. Each is tried once, and the log is told of it once. */
export class Refusals {
  readonly #log: Logger;
  readonly #refused = new WeakSet<Track>();
  /** Tracks that the log has been told of. */
  readonly #told = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** What `make` answers for a track that has a place; undefined for another. */
  tried<T>(track: MediaTrack, make: () => T): T | undefined {
    if (this.#refused.has(track)) return undefined;
    try {
      return make();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#refused.add(track);
      this.#tell(track, error.message);
      return undefined;
    }
  }

  #tell({ id, codec }: MediaTrack, reason: string): void {
    const key = `${id} ${codec}`;
    if (this.#told.has(key)) return;
    this.#told.add(key);
    this.#log.warn({ track: id, codec, reason }, 'the track is not included in HLS');
  }
}
