import type { OutputProfileConfig } from '../../config/model.ts';
import type { Track } from '../../core/track.ts';

type TrackSet = OutputProfileConfig['tracksets'][number];

/** The tracks of a stream that a trackset names, in the stream's order. */
export function tracksOf({ videos, audios }: Pick<TrackSet, 'videos' | 'audios'>, tracks: readonly Track[]): Track[] {
  const chosen = new Set<Track>();
  for (const [wanted, type] of [
    [videos, 'video'],
    [audios, 'audio'],
  ] as const) {
    for (const { name, indexHint } of wanted) {
      const named = tracks.filter((track) => track.type === type && track.name === name);
      for (const track of indexHint < 0 ? named : named.slice(indexHint, indexHint + 1)) chosen.add(track);
    }
  }
  return tracks.filter((track) => chosen.has(track));
}

/** Whether a stream has a track for each that a trackset names. */
export function hasAll({ videos, audios }: TrackSet, tracks: readonly Track[]): boolean {
  return (
    videos.every((one) => tracksOf({ videos: [one], audios: [] }, tracks).length > 0) &&
    audios.every((one) => tracksOf({ videos: [], audios: [one] }, tracks).length > 0)
  );
}
