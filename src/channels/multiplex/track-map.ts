import { EVENT_TRACK_NAME } from '../../core/event-tracks.ts';
import type { Track } from '../../core/track.ts';
import type { SourceStream } from './spec.ts';

export interface MappedTrack {
  readonly from: Track;
  readonly to: Track;
}

type Item = SourceStream['trackMap'][number];

/** Assigns ids to tracks of a channel, which stay the same as long as the channel plays. */
export class TrackIds {
  readonly #ids = new Map<string, number>();

  /** @param source index of the source @param item index in its track map @param id id of the source's track */
  of(source: number, item: number, id: number): number {
    const key = `${source}/${item}/${id}`;
    const known = this.#ids.get(key) ?? this.#ids.size;
    this.#ids.set(key, known);
    return known;
  }
}

/**
 * First name of a track map without a track in the source; undefined when all have one. A data track exists from its
 * first event on, and does not count as missing before.
 */
export function missingTrack({ trackMap }: SourceStream, tracks: readonly Track[]): string | undefined {
  const item = trackMap.find((one) => one.sourceTrackName !== EVENT_TRACK_NAME && matching(one, tracks).length === 0);
  if (item === undefined) return undefined;
  const { sourceTrackName: name, audioIndex } = item;
  return tracks.some((track) => track.name === name) ? `${name} with audio index ${audioIndex}` : name;
}

/**
 * Maps the tracks of one source to tracks of the channel.
 * @param known tracks so far; unchanged ones stay the same objects
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
  // a channel has subtitle tracks of its own
  const named = tracks.filter(({ name, type }) => name === sourceTrackName && type !== 'subtitle');
  if (audioIndex < 0) return named;
  const chosen = named.filter(({ type }) => type === 'audio')[audioIndex];
  return named.filter((track) => track.type !== 'audio' || track === chosen);
}

function channelTrack(from: Track, id: number, item: Item): Track {
  const { source: _source, encoder: _encoder, ...track } = from;
  const { newTrackName: name, bitrateConf, framerateConf, publicName, language, characteristics } = item;
  const declared = {
    id,
    name,
    bypass: false,
    ...(publicName && { publicName }),
    ...(language && { language }),
    ...(characteristics && { characteristics }),
  };
  if (track.type === 'data' || track.type === 'subtitle') return Object.freeze({ ...track, ...declared });
  const bitrate = bitrateConf || track.bitrate;
  if (track.type === 'audio') return Object.freeze({ ...track, ...declared, bitrate });
  const framerate = framerateConf || track.framerate;
  return Object.freeze({ ...track, ...declared, bitrate, framerate, keyFrameInterval: 0 });
}
