import type { Track } from '../core/track.ts';

/** Which tracks of an output stream a task takes. Where both lists are empty, it takes what it can carry. */
export interface TrackChoice {
  readonly trackIds: readonly number[];
  /** Names of tracks; `name:index` is the one at that place, from 0, among those of the name and the same kind. */
  readonly variantNames: readonly string[];
}

export interface TrackSelection {
  /** In the order of the stream. */
  readonly tracks: readonly Track[];
  /** What was asked for and is not taken, as sentences for the operator. */
  readonly warnings: readonly string[];
}

/**
 * The tracks that a task takes: those that are named, and where none is, the first of each kind that can be carried.
 * @param objection why a track cannot be carried; undefined for one that can
 */
export function selectTracks(
  tracks: readonly Track[],
  { trackIds, variantNames }: TrackChoice,
  objection: (track: Track) => string | undefined,
): TrackSelection {
  const warnings: string[] = [];
  const refused = new Map(tracks.map((track) => [track, objection(track)]));
  const refuse = (track: Track): void => {
    warnings.push(`track ${track.id} (${track.name}) is left out: ${refused.get(track)}`);
  };
  if (trackIds.length === 0 && variantNames.length === 0) {
    const chosen = new Map<Track['type'], Track>();
    for (const track of tracks) {
      if (refused.get(track) === undefined && !chosen.has(track.type)) chosen.set(track.type, track);
    }
    for (const track of tracks)
      if ((track.type === 'video' || track.type === 'audio') && !chosen.has(track.type)) refuse(track);
    return { tracks: [...chosen.values()], warnings };
  }
  const wanted = new Set<Track>();
  for (const id of trackIds) {
    const track = tracks.find((one) => one.id === id);
    if (track === undefined) warnings.push(`the stream has no track ${id}`);
    else wanted.add(track);
  }
  for (const name of variantNames) {
    const named = namedTracks(tracks, name);
    if (named.length === 0) warnings.push(`the stream has no track named ${name}`);
    for (const track of named) wanted.add(track);
  }
  const taken = tracks.filter((track) => wanted.has(track));
  for (const track of taken) if (refused.get(track) !== undefined) refuse(track);
  return { tracks: taken.filter((track) => refused.get(track) === undefined), warnings };
}

/** A name may contain a colon itself: as a whole it comes first. */
function namedTracks(tracks: readonly Track[], variant: string): readonly Track[] {
  const exact = tracks.filter(({ name }) => name === variant);
  if (exact.length > 0) return exact;
  const [, name, index] = /^(.*):(\d+)$/s.exec(variant) ?? [];
  if (name === undefined) return [];
  const types = ['video', 'audio', 'image', 'data'] as const;
  return types.flatMap((type) => {
    const track = tracks.filter((one) => one.type === type && one.name === name)[Number(index)];
    return track === undefined ? [] : [track];
  });
}
