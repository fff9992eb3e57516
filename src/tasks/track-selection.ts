import Type, { type Static } from 'typebox';
import { eventsBeside, isMedia, type Track } from '../core/track.ts';

/** Choice of tracks of an output stream. With both lists empty, a task takes all that it can carry. */
export interface TrackChoice {
  readonly trackIds: readonly number[];
  /** Names of tracks; `name:index` is the one at that place, from 0, among those of the name and the same kind. */
  readonly variantNames: readonly string[];
}

/** An output stream, which need not exist yet, with a choice of its tracks. */
export const TrackStream = Type.Object({
  name: Type.String(),
  trackIds: Type.Array(Type.Integer()),
  variantNames: Type.Array(Type.String()),
});
export type TrackStream = Static<typeof TrackStream> & TrackChoice;

export interface TrackSelection {
  /** Selected tracks, in the order of the stream. */
  readonly tracks: readonly Track[];
  /** Requested tracks that are not taken, as sentences for the operator. */
  readonly warnings: readonly string[];
}

/**
 * The tracks that a task takes: those that are named, and where none is, one of each kind that can be carried, as
 * `preferred` chooses it. Tracks of events that can be carried go with those that they belong beside.
 * @param objection why a track cannot be carried; undefined for one that can
 * @param before what the task has taken so far
 */
export function selectTracks(
  tracks: readonly Track[],
  choice: TrackChoice,
  objection: (track: Track) => string | undefined,
  before: readonly Track[] = [],
): TrackSelection {
  const { tracks: chosen, warnings } = selectNamed(tracks, choice, objection, before);
  const events = new Set<Track>(eventsBeside(chosen, tracks).filter((track) => objection(track) === undefined));
  return { tracks: tracks.filter((track) => chosen.includes(track) || events.has(track)), warnings };
}

/**
 * One of some tracks of a kind: that which the task has taken so far, else the first that is the source's own, else the
 * first.
 */
export function preferred(tracks: readonly Track[], before: readonly Track[]): Track | undefined {
  const known = tracks.find(({ id, type }) => before.some((one) => one.id === id && one.type === type));
  return known ?? tracks.find(({ bypass }) => bypass) ?? tracks[0];
}

function selectNamed(
  tracks: readonly Track[],
  { trackIds, variantNames }: TrackChoice,
  objection: (track: Track) => string | undefined,
  before: readonly Track[],
): TrackSelection {
  const warnings: string[] = [];
  const refused = new Map(tracks.map((track) => [track, objection(track)]));
  const refuse = (track: Track): void => {
    warnings.push(`track ${track.id} (${track.name}) is left out: ${refused.get(track)}`);
  };
  if (trackIds.length === 0 && variantNames.length === 0) {
    const able = tracks.filter((track) => refused.get(track) === undefined);
    const chosen = (['video', 'audio', 'image'] as const).flatMap(
      (type) =>
        preferred(
          able.filter((track) => track.type === type),
          before,
        ) ?? [],
    );
    for (const track of tracks) if (isMedia(track) && !chosen.some(({ type }) => type === track.type)) refuse(track);
    return { tracks: chosen, warnings };
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
  const types = ['video', 'audio', 'image', 'data', 'subtitle'] as const;
  return types.flatMap((type) => {
    const track = tracks.filter((one) => one.type === type && one.name === name)[Number(index)];
    return track === undefined ? [] : [track];
  });
}
