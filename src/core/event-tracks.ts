import { VIDEO_TIMEBASE } from './timebase.ts';
import type { DataCodec, DataTrack, Track } from './track.ts';

/** Ids of tracks of events that are given here: greater than those of media, which do not depend on how many there are. */
export const FIRST_EVENT_TRACK_ID = 1024;
/** Name of every track of events, wherever its stream comes from. */
export const EVENT_TRACK_NAME = 'Data';

/** Data tracks of an input stream for events that its source does not send: one a codec and target, from the first event on. */
export class EventTracks {
  #tracks: readonly DataTrack[] = [];

  /** @returns the source's tracks, followed by the tracks of events */
  after(tracks: readonly Track[]): readonly Track[] {
    if (this.#tracks.length === 0) return tracks;
    const source = tracks.filter((track) => !this.#tracks.some((own) => own === track));
    const isTaken = ({ id }: Track): boolean => source.some((track) => track.id === id);
    for (const [index, own] of this.#tracks.entries()) {
      if (isTaken(own)) this.#tracks = this.#tracks.with(index, { ...own, id: freeId([...source, ...this.#tracks]) });
    }
    return [...source, ...this.#tracks];
  }

  /**
   * The track for events of a kind; `isNew` where it is made by this call.
   * @param tracks that the stream has
   */
  of(
    codec: DataCodec,
    target: DataTrack['target'],
    tracks: readonly Track[],
  ): { readonly track: DataTrack; readonly isNew: boolean } {
    const known = this.#tracks.find((track) => track.codec === codec && track.target === target);
    if (known !== undefined) return { track: known, isNew: false };
    const track: DataTrack = Object.freeze({
      id: freeId(tracks),
      name: EVENT_TRACK_NAME,
      type: 'data',
      codec,
      timebase: VIDEO_TIMEBASE,
      bypass: false,
      ...(target && { target }),
    });
    this.#tracks = [...this.#tracks, track];
    return { track, isNew: true };
  }
}

/** An id for a track of events that none of these tracks has. */
export function freeId(tracks: readonly Track[]): number {
  return tracks.reduce((free, { id }) => Math.max(free, id + 1), FIRST_EVENT_TRACK_ID);
}
