import type { MediaKind } from './track-id.ts';

/** Ids of the tracks that a source announces, as it numbers those of a kind. */
export type Announced = Readonly<Record<MediaKind, readonly number[]>>;

const KINDS = ['video', 'audio'] as const;
/** How long tracks are waited for when one is known. */
export const TRACKS_WAIT_MS = 1000;
const MAX_WAITING_UNITS = 1024;
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/**
 * Decides when a source's tracks are complete: all that are announced, or a picture and sound where nothing is, by
 * the time of the first frame, before which sources send the headers of all their tracks; or waited long enough.
 */
export class StartGate {
  #announced: Announced | undefined;
  readonly #known: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  readonly #absent: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  #units = 0;
  #bytes = 0;
  readonly #waited = new Set<MediaKind>();

  announce(announced: Announced | undefined): void {
    this.#announced = announced ?? this.#announced;
  }

  /** The track is known. @param trackId as the source numbers those of a kind */
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

  /** Tracks were waited for long enough; without a kind, all of them. */
  waited(kind?: MediaKind): void {
    for (const each of KINDS) if (kind === undefined || kind === each) this.#waited.add(each);
  }

  get anyKnown(): boolean {
    return this.#known.video.size > 0 || this.#known.audio.size > 0;
  }

  get open(): boolean {
    if (!this.anyKnown) return false;
    if (this.#waited.size === KINDS.length || this.#units >= MAX_WAITING_UNITS || this.#bytes >= MAX_WAITING_BYTES)
      return true;
    return this.#units > 0 && this.#settled('video') && this.#settled('audio');
  }

  #settled(kind: MediaKind): boolean {
    if (this.#waited.has(kind)) return true;
    const known = this.#known[kind];
    const absent = this.#absent[kind];
    if (this.#announced === undefined) return known.size > 0 || absent.size > 0;
    return this.#announced[kind].every((trackId) => known.has(trackId) || absent.has(trackId));
  }
}
