import { EVENT_TRACK_NAME } from '../../core/event-tracks.ts';
import type { Track } from '../../core/track.ts';
import type { SourceStream } from './spec.ts';

/** A track of a source, and what it is in the channel. */
export interface MappedTrack {
  readonly from: Track;
  readonly to: Track;
}

type Item = SourceStream['trackMap'][number];

/** Gives tracks of a channel their ids, each the same as long as the channel plays. */
export class TrackIds {
  readonly #ids = new Map<string, number>();

  /** @param source place of the source @param item place in its track map @param id of the source's track */
  of(source: number, item: number, id: number): number {
    const key = `${source}/${item}/${id}`;
    const known = this.#ids.get(key) ?? this.#ids.size;
    this.#ids.set(key, known);
    return known;
  }
}

/**
 * The first name of a track map that a source has no track of; undefined when it has all. A track of events is there from the
 * first one on, and is not missed until then.
 */
export function missingTrack({ trackMap }: SourceStream, tracks: readonly Track[]): string | undefined {
  const item = trackMap.find((one) => one.sourceTrackName !== EVENT_TRACK_NAME && matching(one, tracks).length === 0);
  if (item === undefined) return undefined;
  const { sourceTrackName: name, audioIndex } = item;
  return tracks.some((track) => track.name === name) ? `${name} with audio index ${audioIndex}` : name;
}

/**
 * The tracks of a channel that come of one source.
 * @param known those of before: what has not changed stays the same object
 */
export function mapTracks(
  { trackMap }: SourceStream,
  tracks: readonly Track[],
  idOf: (item: number, id: number) => number,
  known: readonly MappedTrack[] = [],
): MappedTrack[] {
  return trackMap.flatMap((item, index) =>
    matching(item, tracks).map((from) => {
      const id = idOf(index, from.id);
      return known.find((one) => one.from === from && one.to.id === id) ?? { from, to: channelTrack(from, id, item) };
    }),
  );
}

function matching({ sourceTrackName, audioIndex }: Item, tracks: readonly Track[]): Track[] {
  const named = tracks.filter(({ name }) => name === sourceTrackName);
  if (audioIndex < 0) return named;
  const chosen = named.filter(({ type }) => type === 'audio')[audioIndex];
  return named.filter((track) => track.type !== 'audio' || track === chosen);
}

function channelTrack(from: Track, id: number, item: Item): Track {
  const { source: _source, encoder: _encoder, ...track } = from;
  const { newTrackName: name, bitrateConf, framerateConf, publicName, language, characteristics } = item;
  const told = {
    id,
    name,
    bypass: false,
    ...(publicName && { publicName }),
    ...(language && { language }),
    ...(characteristics && { characteristics }),
  };
  if (track.type === 'data') return Object.freeze({ ...track, ...told });
  const bitrate = bitrateConf || track.bitrate;
  if (track.type === 'audio') return Object.freeze({ ...track, ...told, bitrate });
  const framerate = framerateConf || track.framerate;
  return Object.freeze({ ...track, ...told, bitrate, framerate, keyFrameInterval: 0 });
}
