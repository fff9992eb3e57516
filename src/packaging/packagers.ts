import { isMedia, type MediaTrack, type Track } from '../core/track.ts';
import type { Logger } from '../log/log.ts';
import type { PartForm } from './part-form.ts';
import { Refusals } from './refusals.ts';
import type { TrackPackager } from './track-packager.ts';

/** Packagers of the tracks of one stream. */
export class Packagers<Data> {
  readonly #all = new Map<number, TrackPackager<Data>>();
  readonly #form: PartForm<Data>;
  /** Next version of an initialization, by track id: a track that returns reuses its file names. */
  readonly #initVersions: Map<number, number>;
  readonly #refusals: Refusals;
  readonly #make: (track: MediaTrack, initVersion: number) => TrackPackager<Data>;

  /**
   * @param initVersions next version of an initialization, by track id
   * @param make as the constructor of a packager
   */
  constructor(
    form: PartForm<Data>,
    initVersions: ReadonlyMap<number, number> | undefined,
    log: Logger,
    make: (track: MediaTrack, initVersion: number) => TrackPackager<Data>,
  ) {
    this.#form = form;
    this.#initVersions = new Map(initVersions);
    this.#refusals = new Refusals(log);
    this.#make = make;
  }

  /** Packagers by track id. */
  get all(): ReadonlyMap<number, TrackPackager<Data>> {
    return this.#all;
  }

  /** Next version of an initialization, by track id. */
  get inits(): Map<number, number> {
    const inits = new Map(this.#initVersions);
    for (const [id, { init }] of this.#all) inits.set(id, init.version + 1);
    return inits;
  }

  /**
   * Sets the tracks of the stream. A track that has left and that players need stays, as if it paused: a server keeps the
   * renditions that it announced (RFC 8216bis 6.2.1).
   * @param adopts whether packagers take over other configurations at once: no segment grows
   * @returns packagers of new tracks
   */
  set(tracks: readonly Track[], adopts: boolean): TrackPackager<Data>[] {
    for (const [id, packager] of this.#all) {
      const track = tracks.find((one) => one.id === id);
      if (!this.#stays(packager, track, tracks)) {
        this.#all.delete(id);
        this.#initVersions.set(id, packager.init.version + 1);
        continue;
      }
      packager.standIn.stay(track !== undefined);
      if (adopts && track !== undefined) packager.adopt(track as MediaTrack);
    }
    const added: TrackPackager<Data>[] = [];
    for (const track of tracks) {
      if (!isMedia(track) || this.#all.has(track.id)) continue;
      const packager = this.#refusals.tried(track, () => this.#make(track, this.#initVersions.get(track.id) ?? 0));
      if (packager === undefined) continue;
      this.#all.set(track.id, packager);
      added.push(packager);
    }
    return added;
  }

  #stays(packager: TrackPackager<Data>, track: Track | undefined, tracks: readonly Track[]): boolean {
    if (track === undefined) return livesOn(packager, tracks);
    return track === packager.track || this.#canBecome(packager, track);
  }

  #canBecome({ track: { type }, init: { version } }: TrackPackager<Data>, track: Track): boolean {
    if (!isMedia(track) || track.type !== type) return false;
    return this.#refusals.tried(track, () => this.#form.describe(track, version)) !== undefined;
  }
}

/** Whether players need a track that has left: audio, and video if there is no other. */
function livesOn<Data>({ track, window }: TrackPackager<Data>, tracks: readonly Track[]): boolean {
  if (window.last === undefined || !tracks.some(isMedia)) return false;
  return track.type === 'audio' || tracks.every(({ type }) => type !== 'video');
}
