import type { MediaKind } from './track-id.ts';

/** Ids of the tracks that a source announces, as it numbers those of a kind. */
export type Announced = Readonly<Record<MediaKind, readonly number[]>>;

const KINDS = ['video', 'audio'] as const;
/** Wait for further tracks once one has begun. */
export const TRACKS_WAIT_MS = 1000;
const MAX_WAITING_UNITS = 1024;
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

/**
 * Decides when a source's tracks are complete: when something has come of each that it announces or describes, or of video and
 * audio where it announces nothing; or when they were waited for long enough. What is announced and never comes is no track.
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

  /** Notes that a unit of a track has arrived. @param trackId as the source numbers those of a kind */
  present(kind: MediaKind, trackId: number): void {
    this.#present[kind].add(trackId);
  }

  /** A track that cannot be taken, or has been waited for, need not be waited for. */
  absent(kind: MediaKind, trackId: number): void {
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

  /** Something may come of some track. */
  get anyDescribed(): boolean {
    return this.anyPresent || KINDS.some((kind) => this.#described[kind].size > 0);
  }

  get anyPresent(): boolean {
    return KINDS.some((kind) => this.#present[kind].size > 0);
  }

  /** Something of the track has come. @param trackId as the source numbers those of a kind */
  isPresent(kind: MediaKind, trackId: number): boolean {
    return this.#present[kind].has(trackId);
  }

  /** There is a picture to come: what decoders need for it is known. */
  get expectsPicture(): boolean {
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
