import type { Playlist, Rendition as Wanted } from '../../../core/playlist.ts';
import type { MediaTrack, Track } from '../../../core/track.ts';

export interface Choosable {
  readonly track: MediaTrack;
}

/** One choice of a player: a video with any of the audios, or the audios alone. */
export interface Variant<R extends Choosable> {
  readonly video: R | undefined;
  /** Languages of one audio; the first is played unless the viewer chooses. */
  readonly audios: readonly R[];
}

/**
 * Variants of a playlist, each once. A rendition is left out if a track that it names is missing. If that leaves none, renditions
 * play with the tracks that they have: those with video, or else those with audio alone.
 */
export function variants<R extends Choosable>(playlist: Playlist, renditions: readonly R[]): Variant<R>[] {
  const named = (type: 'video' | 'audio', name: string | undefined, index: number | undefined) => {
    const variant = renditions.filter(({ track }) => track.type === type && track.name === name);
    return index === undefined ? variant : variant.slice(index, index + 1);
  };
  const found = playlist.renditions.map((wanted) => ({
    wanted,
    videos: named('video', wanted.videoVariantName, wanted.videoIndex),
    audios: named('audio', wanted.audioVariantName, wanted.audioIndex),
  }));
  const whole = found.filter(({ wanted, videos, audios }) => isWhole(wanted, videos, audios));
  const seen = found.filter(({ videos }) => videos.length > 0);
  const chosen = whole.length > 0 ? whole : seen.length > 0 ? seen : found.filter(({ audios }) => audios.length > 0);
  const all = chosen.flatMap(({ videos, audios }): Variant<R>[] =>
    videos.length === 0 ? [{ video: undefined, audios }] : videos.map((video) => ({ video, audios })),
  );
  return all.filter((one, at) => all.findIndex((other) => isSame(one, other)) === at);
}

export function renditionsOf<R extends Choosable>(all: readonly Variant<R>[]): R[] {
  return [...new Set(all.flatMap(({ video, audios }) => (video === undefined ? audios : [video, ...audios])))];
}

export function namedTracks(tracks: readonly Track[], playlists: readonly Playlist[]): Track[] {
  const names = new Set(
    playlists.flatMap(({ renditions }) =>
      renditions.flatMap(({ videoVariantName, audioVariantName }) => [videoVariantName, audioVariantName]),
    ),
  );
  return tracks.filter(({ name }) => names.has(name));
}

function isWhole(wanted: Wanted, videos: readonly Choosable[], audios: readonly Choosable[]): boolean {
  const complete = (name: string | undefined, there: readonly Choosable[]) => name === undefined || there.length > 0;
  if (videos.length + audios.length === 0) return false;
  return complete(wanted.videoVariantName, videos) && complete(wanted.audioVariantName, audios);
}

function isSame<R extends Choosable>(one: Variant<R>, other: Variant<R>): boolean {
  return one.video === other.video && one.audios[0] === other.audios[0];
}
