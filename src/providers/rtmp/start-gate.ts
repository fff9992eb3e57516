import type { Declared } from './metadata.ts';
import type { MediaKind } from './track-id.ts';

/** How long tracks are waited for when one is known. */
export const TRACKS_WAIT_MS = 1000;
const MAX_WAITING_UNITS = 1024;
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/**
 * Decides when a source's tracks are complete: all that are announced, or a picture and sound where nothing is, by
 * the time of the first frame; or waited long enough.
 */
export class StartGate {
  #announced: Declared['announced'];
  readonly #known: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  readonly #absent: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  #units = 0;
  #bytes = 0;
  #waited = false;

  announce(announced: Declared['announced']): void {
    this.#announced = announced ?? this.#announced;
  }

  /** The track is known. @param trackId of Enhanced RTMP */
  known(kind: MediaKind, trackId: number): void {
    this.#known[kind].add(trackId);
  }

  /** A track that cannot be taken need not be waited for. */
  unusable(kind: MediaKind, trackId: number): void {
    this.#absent[kind].add(trackId);
  }

  /** One unit is held back. */
  held(bytes: number): void {
    this.#units++;
    this.#bytes += bytes;
  }

  /** Tracks were waited for long enough. */
  waited(): void {
    this.#waited = true;
  }

  get anyKnown(): boolean {
    return this.#known.video.size > 0 || this.#known.audio.size > 0;
  }

  get open(): boolean {
    if (!this.anyKnown) return false;
    if (this.#waited || this.#units >= MAX_WAITING_UNITS || this.#bytes >= MAX_WAITING_BYTES) return true;
    // Sources send the headers of all their tracks before the first frame, whether they announce them or not.
    return this.#units > 0 && this.#settled('video') && this.#settled('audio');
  }

  #settled(kind: MediaKind): boolean {
    const known = this.#known[kind];
    const absent = this.#absent[kind];
    if (this.#announced === undefined) return known.size > 0 || absent.size > 0;
    return this.#announced[kind].every((trackId) => known.has(trackId) || absent.has(trackId));
  }
}
