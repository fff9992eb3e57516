import type { MediaKind } from './track-id.ts';

/** Ids of the tracks that a source announces, as it numbers those of a kind. */
export type Announced = Readonly<Record<MediaKind, readonly number[]>>;

const KINDS = ['video', 'audio'] as const;
/** Wait for further tracks once one has begun. */
export const TRACKS_WAIT_MS = 1000;
const MAX_WAITING_UNITS = 1024;
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/**
 * Decides when a source's tracks are complete: when each announced or described track has begun, or one of video and one
 * of audio if none are announced; or when the wait is over. An announced track that never begins is left out.
 */
export class StartGate {
  #announced: Announced | undefined;
  readonly #described: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  readonly #present: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  readonly #absent: Readonly<Record<MediaKind, Set<number>>> = { video: new Set(), audio: new Set() };
  #units = 0;
  #bytes = 0;
  readonly #waited = new Set<MediaKind>();

  announce(announced: Announced | undefined): void {
    this.#announced = announced ?? this.#announced;
  }

  /** Notes that the decoder configuration of a track is known. @param trackId as the source numbers those of a kind */
  described(kind: MediaKind, trackId: number): void {
    this.#described[kind].add(trackId);
  }

  present(kind: MediaKind, trackId: number): void {
    this.#present[kind].add(trackId);
  }

  absent(kind: MediaKind, trackId: number): void {
    this.#absent[kind].add(trackId);
  }

  held(bytes: number): void {
    this.#units++;
    this.#bytes += bytes;
  }

  /** Ends the wait for further tracks of a kind; without a kind, of both. */
  waited(kind?: MediaKind): void {
    for (const each of KINDS) if (kind === undefined || kind === each) this.#waited.add(each);
  }

  get anyDescribed(): boolean {
    return this.anyPresent || KINDS.some((kind) => this.#described[kind].size > 0);
  }

  get anyPresent(): boolean {
    return KINDS.some((kind) => this.#present[kind].size > 0);
  }

  isPresent(kind: MediaKind, trackId: number): boolean {
    return this.#present[kind].has(trackId);
  }

  /** Whether a video track is described, so that its frames follow, and none has begun. */
  get expectsVideo(): boolean {
    return this.#described.video.size > 0 && this.#present.video.size === 0;
  }

  get open(): boolean {
    if (!this.anyPresent) return false;
    if (this.#units >= MAX_WAITING_UNITS || this.#bytes >= MAX_WAITING_BYTES) return true;
    return this.#settled('video') && this.#settled('audio');
  }

  #settled(kind: MediaKind): boolean {
    if (this.#waited.has(kind)) return true;
    const present = this.#present[kind];
    const absent = this.#absent[kind];
    if (this.#announced === undefined && present.size + absent.size === 0) return false;
    const expected = [...(this.#announced?.[kind] ?? []), ...this.#described[kind]];
    return expected.every((trackId) => present.has(trackId) || absent.has(trackId));
  }
}
